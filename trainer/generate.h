/* `ringmaster-trainer generate FOLDER --prompt TEXT --tokens N [--seed N] [--temperature X]`: the prompt and
 * what the model makes of it, on stdout. FOLDER holds config.json and model.safetensors, or has such a folder
 * as its `final`. What a token means tokenizer.json beside them says (bpe.h), of a vocabulary that goes
 * beyond it only its tokens are drawn; without one the tokens of a model of text are bytes. */
#ifndef RM_TRAINER_GENERATE_H
#define RM_TRAINER_GENERATE_H

/* argv[0] is "generate". Returns the exit code: 0, 2 (usage), 3 (the folder), 4. */
int generate_main(int argc, char **argv);

#endif
