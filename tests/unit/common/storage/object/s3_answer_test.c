#include "common/storage/object/s3_answer.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/storage/object/xml.h"

#define XMLNS " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

static int note(void *ctx, const char *path, const char *text, struct error *err)
{
    (void)err;
    str_addf(ctx, "%s=%s\n", path, text);
    return 0;
}

static const char *read_xml(const char *text, struct str *out, struct error *err)
{
    str_reset(out);
    *err = (struct error){0};
    return xml_read(text, strlen(text), note, out, err) < 0 ? err->text : str_text(out);
}

Test(xml, elements_come_with_their_path_and_text)
{
    struct str out = str_init(4096);
    struct error err;
    cr_assert_str_eq(
        read_xml("<?xml version=\"1.0\"?>\n<a xmlns='u'> <s:b x='1'>t &lt;&#65;</s:b>\n<c/></a>", &out, &err),
        "a/b=t <A\na/c=\na=\n");
    str_clear(&out);
}

Test(xml, what_no_store_says_is_refused)
{
    static const char *const wrong[] = {
        "",
        "<a>",
        "<a></b>",
        "<a>x<b/></a>",
        "<a><b/>x</a>",
        "<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>",
        "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>",
        "<a>&unknown;</a>",
        "<1><2><3/></2></1>",
        "<a><a><a><a><a><a><a><a><a/></a></a></a></a></a></a></a></a>",
        "<a>\xff</a>",
        "<a/>rest",
    };
    struct str out = str_init(4096);
    struct error err;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        read_xml(wrong[i], &out, &err);
        cr_assert_eq(err.code, ERR_DATA, "%s", wrong[i]);
        cr_assert_neq(err.text[0], 0);
    }
    str_clear(&out);
}

Test(xml, texts_and_names_have_a_ceiling)
{
    struct str out = str_init(64 << 10), text = str_init(64 << 10);
    struct error err;
    str_adds(&text, "<a>");
    for (int i = 0; i < XML_TEXT_MAX; i++)
        str_adds(&text, "x");
    str_adds(&text, "</a>");
    read_xml(str_text(&text), &out, &err);
    cr_assert_eq(err.code, ERR_DATA);
    str_clear(&text);
    str_addf(&text, "<%0300d/>", 0);
    text.data[1] = 'n';
    read_xml(str_text(&text), &out, &err);
    cr_assert_eq(err.code, ERR_DATA);
    str_clear(&text);
    str_clear(&out);
}

/* --- listings --- */

static int note_object(void *ctx, const char *key, const struct object_info *info, struct error *err)
{
    (void)err;
    str_addf(ctx, "%s %lld %lld %s\n", key, (long long)info->bytes, (long long)info->modified_s, info->tag);
    return 0;
}

static int note_folder(void *ctx, const char *prefix, struct error *err)
{
    (void)err;
    str_addf(ctx, "%s\n", prefix);
    return 0;
}

static const char *read_page(const char *text, struct str *out, char next[S3_TOKEN_MAX], struct error *err)
{
    struct s3_page_reader reader = {note_object, note_folder, out};
    str_reset(out);
    *err = (struct error){0};
    return s3_answer_page(text, strlen(text), &reader, next, err) < 0 ? err->text : str_text(out);
}

Test(s3_answer, a_page_of_a_listing_is_read_encoded_or_not)
{
    struct str out = str_init(4096);
    struct error err;
    char next[S3_TOKEN_MAX];
    const char *plain =
        "<ListBucketResult" XMLNS
        "><Name>b</Name><IsTruncated>true</IsTruncated><Contents><Key>a+b %41&amp;</Key>"
        "<LastModified>1994-11-06T08:49:37.000Z</LastModified><ETag>&quot;e&quot;</ETag><Size>7</Size>"
        "<Owner><ID>x</ID></Owner></Contents><CommonPrefixes><Prefix>p/q/</Prefix></CommonPrefixes>"
        "<NextContinuationToken>t/=</NextContinuationToken></ListBucketResult>";
    cr_assert_str_eq(read_page(plain, &out, next, &err), "a+b %41& 7 784111777 \"e\"\np/q/\n");
    cr_assert_str_eq(next, "t/=");
    const char *coded = "<ListBucketResult><Contents><Key>a+b%2B%c3%bc%0a</Key><Size>0</Size></Contents>"
                        "<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated></ListBucketResult>";
    cr_assert_str_eq(read_page(coded, &out, next, &err), "a b+\xc3\xbc\n 0 0 \n");
    cr_assert_str_eq(next, "");
    str_clear(&out);
}

Test(s3_answer, a_page_that_cannot_be_is_refused)
{
    static const char *const wrong[] = {
        "<Other/>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key></Key><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>99999999999999999999</Size></Contents></"
        "ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>1 </Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>1</Size><LastModified>now</LastModified></Contents></"
        "ListBucketResult>",
        "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%0</Key><Size>1</Size></Contents></"
        "ListBucketResult>",
        "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%00</Key><Size>1</Size></"
        "Contents></ListBucketResult>",
        "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%zz</Key><Size>1</Size></"
        "Contents></ListBucketResult>",
    };
    struct str out = str_init(4096);
    struct error err;
    char next[S3_TOKEN_MAX];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        read_page(wrong[i], &out, next, &err);
        cr_assert_eq(err.code, ERR_DATA, "%s", wrong[i]);
    }
    str_clear(&out);
}

/* --- uploads --- */

static int note_upload(void *ctx, const char *key, const char *id, struct error *err)
{
    (void)err;
    str_addf(ctx, "%s %s\n", key, id);
    return 0;
}

static int note_part(void *ctx, const struct object_part_info *part, struct error *err)
{
    (void)err;
    str_addf(ctx, "%d %lld %s\n", part->number, (long long)part->bytes, part->tag);
    return 0;
}

Test(s3_answer, uploads_and_parts_are_read)
{
    struct str out = str_init(4096);
    char key[S3_KEY_MAX], id[OBJECT_UPLOAD_MAX];
    int next;
    const char *uploads = "<ListMultipartUploadsResult><NextKeyMarker>k%2F</"
                          "NextKeyMarker><NextUploadIdMarker>i</NextUploadIdMarker>"
                          "<EncodingType>url</EncodingType><IsTruncated>true</"
                          "IsTruncated><Upload><Key>a%20b</Key><UploadId>u1</UploadId>"
                          "<Initiated>1994-11-06T08:49:37Z</Initiated></Upload></ListMultipartUploadsResult>";
    struct s3_uploads_reader u = {note_upload, &out};
    cr_assert_eq(s3_answer_uploads(uploads, strlen(uploads), &u, key, id, NULL), 0);
    cr_assert_str_eq(str_text(&out), "a b u1\n");
    cr_assert_str_eq(key, "k/");
    cr_assert_str_eq(id, "i");
    const char *parts =
        "<ListPartsResult><IsTruncated>true</IsTruncated><NextPartNumberMarker>3</NextPartNumberMarker>"
        "<Part><PartNumber>1</PartNumber><ETag>\"a\"</ETag><Size>5</Size><ChecksumCRC32C>AAAAAA==</"
        "ChecksumCRC32C></Part>"
        "<Part><PartNumber>3</PartNumber><ETag>\"b\"</ETag><Size>6</Size></Part></ListPartsResult>";
    struct s3_parts_reader p = {note_part, &out};
    str_reset(&out);
    cr_assert_eq(s3_answer_parts(parts, strlen(parts), &p, &next, NULL), 0);
    cr_assert_str_eq(str_text(&out), "1 5 \"a\"|AAAAAA==\n3 6 \"b\"\n");
    cr_assert_eq(next, 3);
    const char *begun =
        "<InitiateMultipartUploadResult" XMLNS "><UploadId>x/y=</UploadId></InitiateMultipartUploadResult>";
    cr_assert_eq(s3_answer_upload(begun, strlen(begun), id, NULL), 0);
    cr_assert_str_eq(id, "x/y=");
    str_clear(&out);
}

Test(s3_answer, a_completion_may_be_a_refusal_in_a_good_status)
{
    struct s3_refusal refusal;
    const char *done = "<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>";
    const char *refused =
        "<?xml version=\"1.0\"?>\n\n<Error><Code>InternalError</Code><Message>again</Message></Error>";
    cr_assert_eq(s3_answer_completed(done, strlen(done), &refusal, NULL), 0);
    cr_assert_eq(refusal.code[0], 0);
    cr_assert_eq(s3_answer_completed(refused, strlen(refused), &refusal, NULL), 0);
    cr_assert_str_eq(refusal.code, "InternalError");
    cr_assert_eq(s3_answer_completed("", 0, &refusal, NULL), -1);
    cr_assert_eq(s3_answer_completed("<Hm/>", 5, &refusal, NULL), -1);
}

Test(s3_answer, a_page_of_a_proxy_is_no_refusal_and_no_harm)
{
    struct s3_refusal refusal;
    const char *html = "<html><body><p>Bad gateway<br></body></html>";
    const char *region = "<Error><Code>PermanentRedirect</Code><Region>eu-north-1</Region></Error>";
    s3_answer_refusal(html, strlen(html), &refusal);
    cr_assert_eq(refusal.code[0], 0);
    s3_answer_refusal(region, strlen(region), &refusal);
    cr_assert_str_eq(refusal.region, "eu-north-1");
    s3_answer_refusal(NULL, 0, &refusal);
    cr_assert_eq(refusal.code[0], 0);
}

Test(s3_answer, a_session_is_whole_or_refused)
{
    struct s3_session *session = calloc(1, sizeof *session);
    const char *whole =
        "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"
        "<AssumeRoleWithWebIdentityResult><Credentials><SessionToken>t</SessionToken>"
        "<SecretAccessKey>s</SecretAccessKey><Expiration>2014-10-24T23:00:23Z</Expiration>"
        "<AccessKeyId>a</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult>"
        "</AssumeRoleWithWebIdentityResponse>";
    cr_assert_eq(s3_answer_session(whole, strlen(whole), session, NULL), 0);
    cr_assert_str_eq(session->secret_key, "s");
    cr_assert_eq(session->ends_s, 1414191623);
    cr_assert_eq(s3_answer_session("<AssumeRoleWithWebIdentityResponse/>", 36, session, NULL), -1);
    free(session);
}
