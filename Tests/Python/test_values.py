import math
import struct
from datetime import datetime, timedelta, timezone
from types import MappingProxyType

import pytest

import kith

DATE = datetime(2026, 11, 21, 10, 0, 0, 123456, tzinfo=timezone.utc)


@pytest.mark.parametrize("value", [
    True, False, 0, 1, -1, 2**63 - 1, -(2**63), 0.0, -0.0, 1.0, 13.5, math.inf, -math.inf, 5e-324,
    "", "dark", "a\0b", "\U0001f600 \u00e9 e\u0301", b"", b"\0\xff" * 500, DATE,
    datetime(1, 1, 1, tzinfo=timezone.utc), datetime(1969, 7, 20, tzinfo=timezone.utc),
    [], {}, [[], [{}]], [True, 1, 1.0, "1", b"1", DATE], {"": 1, "a\0b": {"x": [False, 0]}, "\u00e9": 2},
])
def test_a_value_comes_back_with_its_type(store, value):
    store["value"] = value
    assert identical(store["value"], value)
    store.commit(lambda transaction: transaction.__setitem__("other", value))
    assert identical(store["other"], value)
    assert identical(store.snapshot(), {"other": value, "value": value})


def identical(one, other):
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(identical, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(identical(one[key], other[key]) for key in one)
    if isinstance(one, float):
        return struct.pack("d", one) == struct.pack("d", other)
    return one == other


def test_nan(store):
    store["value"] = math.nan
    assert math.isnan(store["value"])


@pytest.mark.parametrize("value, read", [
    (bytearray(b"x"), b"x"), (memoryview(b"x"), b"x"), ((1, 2), [1, 2]),
    (MappingProxyType({"a": 1}), {"a": 1}),
    (datetime(2026, 11, 21, 12, tzinfo=timezone(timedelta(hours=2))),
     datetime(2026, 11, 21, 10, tzinfo=timezone.utc)),
])
def test_like_types_are_read_as_the_usual_ones(store, value, read):
    store["value"] = value
    assert identical(store["value"], read)


class Own:
    pass


SELF = []
SELF.append(SELF)


@pytest.mark.parametrize("value, word", [
    (None, "None"), ([None], "None"), (Own(), "Own"), ({1}, "set"), (1j, "complex"),
    (2**63, "64 bits"), (-(2**63) - 1, "64 bits"), ([2**64], "64 bits"),
    (datetime(2026, 11, 21), "time zone"), ("\ud800", "surrogate"), (["\ud800"], "surrogate"),
    ({"\ud800": 1}, "surrogate"), ({1: 2}, "names in a dictionary"), (SELF, "within each other"),
    (DATE.date(), "date"), ({"\u00e9": 1, "e\u0301": 2}, "equivalent"),
])
def test_other_values_are_refused(store, value, word):
    store["value"] = "old"
    for write in (store.__setitem__, lambda key, value: store.update({key: value})):
        with pytest.raises(kith.KithError) as raised:
            write("value", value)
        assert raised.value.code == "unsupportedValue"
        assert word in str(raised.value)
    assert store["value"] == "old"


def test_depth_is_that_of_the_store(store):
    def nested(depth):
        value = "deep"
        for _ in range(depth):
            value = [value]
        return value

    store["value"] = nested(64)
    assert store["value"] == nested(64)
    with pytest.raises(kith.KithError):
        store["value"] = nested(65)


def test_keys_compare_by_their_bytes(store):
    store.update({"\u00e9": 1, "e\u0301": 2})
    assert list(store) == ["e\u0301", "\u00e9"]
    assert (store["\u00e9"], store["e\u0301"]) == (1, 2)
