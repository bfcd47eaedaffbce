"""The gradient profiles of hvd-bench against their generator, and what was published. usage: profiles_test.py FOLDER"""

import json
import math
import pathlib
import sys
import unittest

folder = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(folder))
import generate  # noqa: E402


def tensors_of(name):
    return {tensor["name"]: tensor["shape"] for tensor in json.loads((folder / f"{name}.json").read_text())["tensors"]}


class Profiles(unittest.TestCase):
    def test_each_file_is_what_the_generator_writes(self):
        self.assertEqual({path.stem for path in folder.glob("*.json")}, set(generate.PROFILES))
        for name, model in generate.PROFILES.items():
            self.assertEqual((folder / f"{name}.json").read_text(), generate.text(name, model))

    def test_numbers_of_tensors_and_parameters_are_the_published_ones(self):
        published = {
            "resnet50": (161, 25_557_032),
            "vit-b-16": (152, 86_567_656),
            "bert-base": (199, 109_482_240),
            "gpt2": (148, 124_439_808),
        }
        for name, numbers in published.items():
            tensors = tensors_of(name)
            self.assertEqual((len(tensors), sum(map(math.prod, tensors.values()))), numbers, name)

    def test_names_and_shapes_are_those_of_the_frameworks(self):
        self.assertEqual(tensors_of("resnet50")["layer4.0.downsample.0.weight"], [2048, 1024, 1, 1])
        self.assertEqual(tensors_of("vit-b-16")["encoder.layers.encoder_layer_11.mlp.3.weight"], [768, 3072])
        self.assertEqual(tensors_of("bert-base")["encoder.layer.0.attention.output.LayerNorm.bias"], [768])
        self.assertEqual(tensors_of("gpt2")["transformer.h.0.attn.c_attn.weight"], [768, 2304])


if __name__ == "__main__":
    unittest.main()
