"""The comparison must detect wrong results: `python3 -m unittest discover tests/interop`."""

import unittest

from expect import differs, fill


class Differs(unittest.TestCase):
    def test_accepts_the_expected_value(self):
        for expected, got in [
            (1, 1.0),
            ([1, "a"], [1, "a"]),
            ({"a": 1}, {"a": 1, "more": 2}),
            ({"$any": [1, {"a": 2}]}, {"a": 2}),
            ({"$contains": "ell"}, "hello"),
            ({"$contains": [1, 2]}, [3, 2, 1]),
            ({"code": -32602}, {"code": -32602, "error": "no such tool"}),
        ]:
            self.assertIsNone(differs(expected, got), (expected, got))

    def test_rejects_all_other_values(self):
        for expected, got in [
            (1, 2),
            (1, True),
            (None, 0),
            ([1], [1, 2]),
            ([1, 2], [2, 1]),
            ({"a": 1}, {}),
            ({"a": 1}, None),
            ({"$any": [1, 2]}, 3),
            ({"$contains": "x"}, "hello"),
            ({"$contains": [4]}, [1]),
            ({"cancelled": None}, {"code": None, "error": "the cancelled call returned a result"}),
            ([], {"code": -32601, "error": "Method not found"}),
        ]:
            self.assertIsNotNone(differs(expected, got), (expected, got))

    def test_fill_reaches_everywhere(self):
        self.assertEqual(fill({"a": ["${dir}/x", 1]}, {"dir": "/d"}), {"a": ["/d/x", 1]})


if __name__ == "__main__":
    unittest.main()
