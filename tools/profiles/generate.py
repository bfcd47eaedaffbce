#!/usr/bin/env python3
"""Writes the gradient profiles beside this file: the names and shapes of a model's trainable parameters, computed from its
published architecture, in the order in which the model declares them. Gradients become ready in about the reverse order.

usage: generate.py [FOLDER]
"""

import json
import math
import pathlib
import sys


def resnet50():
    """He et al., "Deep Residual Learning for Image Recognition", table 1, named as in torchvision."""
    tensors = []

    def convolution(name, outputs, inputs, kernel):
        tensors.append((f"{name}.weight", [outputs, inputs, kernel, kernel]))

    def batch_norm(name, channels):
        tensors.extend([(f"{name}.weight", [channels]), (f"{name}.bias", [channels])])

    convolution("conv1", 64, 3, 7)
    batch_norm("bn1", 64)
    inputs = 64
    for stage, (blocks, width) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)], start=1):
        outputs = 4 * width
        for block in range(blocks):
            name = f"layer{stage}.{block}"
            convolution(f"{name}.conv1", width, inputs, 1)
            batch_norm(f"{name}.bn1", width)
            convolution(f"{name}.conv2", width, width, 3)
            batch_norm(f"{name}.bn2", width)
            convolution(f"{name}.conv3", outputs, width, 1)
            batch_norm(f"{name}.bn3", outputs)
            if block == 0:
                convolution(f"{name}.downsample.0", outputs, inputs, 1)
                batch_norm(f"{name}.downsample.1", outputs)
            inputs = outputs
    return tensors + linear("fc", 1000, inputs)


def linear(name, outputs, inputs):
    return [(f"{name}.weight", [outputs, inputs]), (f"{name}.bias", [outputs])]


def layer_norm(name, width):
    return [(f"{name}.weight", [width]), (f"{name}.bias", [width])]


def vit_b_16():
    """Dosovitskiy et al., "An Image is Worth 16x16 Words", table 1 (ViT-Base), named as in torchvision."""
    width, mlp, patch, image, layers, classes = 768, 3072, 16, 224, 12, 1000
    tensors = [
        ("class_token", [1, 1, width]),
        ("conv_proj.weight", [width, 3, patch, patch]),
        ("conv_proj.bias", [width]),
        ("encoder.pos_embedding", [1, (image // patch) ** 2 + 1, width]),
    ]
    for layer in range(layers):
        name = f"encoder.layers.encoder_layer_{layer}"
        tensors += layer_norm(f"{name}.ln_1", width)
        tensors += [
            (f"{name}.self_attention.in_proj_weight", [3 * width, width]),
            (f"{name}.self_attention.in_proj_bias", [3 * width]),
        ]
        tensors += linear(f"{name}.self_attention.out_proj", width, width)
        tensors += layer_norm(f"{name}.ln_2", width)
        tensors += linear(f"{name}.mlp.0", mlp, width)
        tensors += linear(f"{name}.mlp.3", width, mlp)
    return tensors + layer_norm("encoder.ln", width) + linear("heads.head", classes, width)


def bert_base():
    """Devlin et al., "BERT" (base, uncased), named as in Hugging Face's BertModel."""
    width, mlp, layers, words, positions = 768, 3072, 12, 30522, 512
    tensors = [
        ("embeddings.word_embeddings.weight", [words, width]),
        ("embeddings.position_embeddings.weight", [positions, width]),
        ("embeddings.token_type_embeddings.weight", [2, width]),
    ]
    tensors += layer_norm("embeddings.LayerNorm", width)
    for layer in range(layers):
        name = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            tensors += linear(f"{name}.attention.self.{part}", width, width)
        tensors += linear(f"{name}.attention.output.dense", width, width)
        tensors += layer_norm(f"{name}.attention.output.LayerNorm", width)
        tensors += linear(f"{name}.intermediate.dense", mlp, width)
        tensors += linear(f"{name}.output.dense", width, mlp)
        tensors += layer_norm(f"{name}.output.LayerNorm", width)
    return tensors + linear("pooler.dense", width, width)


def gpt2():
    """Radford et al., "Language Models are Unsupervised Multitask Learners" (the 124M model; the output layer shares the
    word embedding), named as in Hugging Face's GPT2LMHeadModel, whose layers store their weights transposed."""
    width, layers, words, positions = 768, 12, 50257, 1024

    def transposed(name, inputs, outputs):
        return [(f"{name}.weight", [inputs, outputs]), (f"{name}.bias", [outputs])]

    tensors = [("transformer.wte.weight", [words, width]), ("transformer.wpe.weight", [positions, width])]
    for layer in range(layers):
        name = f"transformer.h.{layer}"
        tensors += layer_norm(f"{name}.ln_1", width)
        tensors += transposed(f"{name}.attn.c_attn", width, 3 * width)
        tensors += transposed(f"{name}.attn.c_proj", width, width)
        tensors += layer_norm(f"{name}.ln_2", width)
        tensors += transposed(f"{name}.mlp.c_fc", width, 4 * width)
        tensors += transposed(f"{name}.mlp.c_proj", 4 * width, width)
    return tensors + layer_norm("transformer.ln_f", width)


PROFILES = {"resnet50": resnet50, "vit-b-16": vit_b_16, "bert-base": bert_base, "gpt2": gpt2}


def text(name, model):
    """The file, one tensor a line."""
    tensors = model()
    parameters = sum(math.prod(shape) for _, shape in tensors)
    source = " ".join(model.__doc__.split())
    head = {"name": name, "source": source, "parameters": parameters}
    lines = [json.dumps({"name": tensor, "shape": shape}) for tensor, shape in tensors]
    return json.dumps(head)[:-1] + ', "tensors": [\n' + ",\n".join(lines) + "\n]}\n"


def main(arguments):
    folder = pathlib.Path(arguments[0] if arguments else __file__).resolve()
    folder = folder if arguments else folder.parent
    for name, model in PROFILES.items():
        (folder / f"{name}.json").write_text(text(name, model))


if __name__ == "__main__":
    main(sys.argv[1:])
