#include "tests/unit/trainer/backend/cpu/model/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct net {
    const struct model_layout *layout;
    const double *params;
    int length, width;
};

static const double *tensor(const struct net *net, int layer, const char *part)
{
    char name[64];
    if (layer < 0)
        snprintf(name, sizeof name, "%s", part);
    else
        snprintf(name, sizeof name, "h.%d.%s", layer, part);
    return net->params + net->layout->tensor[model_layout_find(net->layout, name)].first;
}

static double *rows(const struct net *net, int columns)
{
    return calloc((size_t)net->length * (size_t)columns, sizeof(double));
}

double reference_gelu(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static void norm(const struct net *net, const double *x, const double *weight, const double *bias, double *y)
{
    int c = net->width;
    for (int t = 0; t < net->length; t++) {
        double mean = 0, variance = 0;
        for (int j = 0; j < c; j++)
            mean += x[t * c + j] / c;
        for (int j = 0; j < c; j++)
            variance += (x[t * c + j] - mean) * (x[t * c + j] - mean) / c;
        for (int j = 0; j < c; j++)
            y[t * c + j] = (x[t * c + j] - mean) / sqrt(variance + 1e-5) * weight[j] + bias[j];
    }
}

static void linear(const struct net *net, const double *x, int in, int out, const double *weight,
                   const double *bias, double *y)
{
    for (int t = 0; t < net->length; t++) {
        for (int o = 0; o < out; o++) {
            double sum = bias[o];
            for (int i = 0; i < in; i++)
                sum += x[t * in + i] * weight[i * out + o];
            y[t * out + o] = sum;
        }
    }
}

static void attend_row(const struct net *net, const double *qkv, int head, int size, int t, double *y)
{
    int c = net->width;
    double *weight = rows(net, 1), sum = 0;
    for (int u = 0; u <= t; u++) {
        double score = 0;
        for (int j = 0; j < size; j++)
            score += qkv[t * 3 * c + head * size + j] * qkv[u * 3 * c + c + head * size + j];
        weight[u] = exp(score / sqrt(size));
        sum += weight[u];
    }
    for (int j = 0; j < size; j++) {
        double mix = 0;
        for (int u = 0; u <= t; u++)
            mix += weight[u] / sum * qkv[u * 3 * c + 2 * c + head * size + j];
        y[t * c + head * size + j] = mix;
    }
    free(weight);
}

static void add_attention(const struct net *net, int layer, double *x)
{
    int c = net->width, heads = net->layout->shape.heads;
    double *in = rows(net, c), *qkv = rows(net, 3 * c), *mixed = rows(net, c), *out = rows(net, c);
    norm(net, x, tensor(net, layer, "ln_1.weight"), tensor(net, layer, "ln_1.bias"), in);
    linear(net, in, c, 3 * c, tensor(net, layer, "attn.c_attn.weight"),
           tensor(net, layer, "attn.c_attn.bias"), qkv);
    for (int head = 0; head < heads; head++)
        for (int t = 0; t < net->length; t++)
            attend_row(net, qkv, head, c / heads, t, mixed);
    linear(net, mixed, c, c, tensor(net, layer, "attn.c_proj.weight"), tensor(net, layer, "attn.c_proj.bias"),
           out);
    for (int i = 0; i < net->length * c; i++)
        x[i] += out[i];
    free(in), free(qkv), free(mixed), free(out);
}

static void add_mlp(const struct net *net, int layer, double *x)
{
    int c = net->width;
    double *in = rows(net, c), *wide = rows(net, 4 * c), *out = rows(net, c);
    norm(net, x, tensor(net, layer, "ln_2.weight"), tensor(net, layer, "ln_2.bias"), in);
    linear(net, in, c, 4 * c, tensor(net, layer, "mlp.c_fc.weight"), tensor(net, layer, "mlp.c_fc.bias"),
           wide);
    for (int i = 0; i < net->length * 4 * c; i++)
        wide[i] = reference_gelu(wide[i]);
    linear(net, wide, 4 * c, c, tensor(net, layer, "mlp.c_proj.weight"),
           tensor(net, layer, "mlp.c_proj.bias"), out);
    for (int i = 0; i < net->length * c; i++)
        x[i] += out[i];
    free(in), free(wide), free(out);
}

void reference_logits(const struct model_layout *layout, const double *params, const int32_t *tokens,
                      int length, double *logits)
{
    struct net net = {layout, params, length, layout->shape.width};
    int c = net.width, vocabulary = layout->shape.vocabulary;
    const double *wte = tensor(&net, -1, "wte.weight"), *wpe = tensor(&net, -1, "wpe.weight");
    double *x = rows(&net, c), *last = rows(&net, c);
    for (int t = 0; t < length; t++)
        for (int j = 0; j < c; j++)
            x[t * c + j] = wte[tokens[t] * c + j] + wpe[t * c + j];
    for (int layer = 0; layer < layout->shape.layers; layer++) {
        add_attention(&net, layer, x);
        add_mlp(&net, layer, x);
    }
    norm(&net, x, tensor(&net, -1, "ln_f.weight"), tensor(&net, -1, "ln_f.bias"), last);
    for (int t = 0; t < length; t++) {
        for (int v = 0; v < vocabulary; v++) {
            logits[t * vocabulary + v] = 0;
            for (int j = 0; j < c; j++)
                logits[t * vocabulary + v] += last[t * c + j] * wte[v * c + j];
        }
    }
    free(x), free(last);
}

double reference_loss(const struct model_layout *layout, const double *params, const int32_t *tokens,
                      int length)
{
    int vocabulary = layout->shape.vocabulary;
    double *logits = calloc((size_t)length * (size_t)vocabulary, sizeof *logits), loss = 0;
    reference_logits(layout, params, tokens, length, logits);
    for (int t = 0; t < length; t++) {
        double sum = 0;
        for (int v = 0; v < vocabulary; v++)
            sum += exp(logits[t * vocabulary + v]);
        loss += log(sum) - logits[t * vocabulary + tokens[t + 1]];
    }
    free(logits);
    return loss / length;
}
