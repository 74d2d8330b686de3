# SPDX-License-Identifier: MIT
"""Header: the lines of a C header, and the identifiers that they define."""

from .c_text import c_name, hexadecimal, number


class Header:
    """Collects lines of C. Refuses an identifier that is defined twice, so that no compiler has to.

    renames: such names get a number instead. Why: the user of an SVD file cannot rename anything."""

    def __init__(self, device_name, renames=False):
        self.prefix, self.renames = device_name.upper(), renames
        self.text = []                # lines of the header
        self.lines = {}               # identifier -> line of the input
        self.repeats = {}             # name -> how often it came
        self.arrays = set()           # each Dim that has its constants

    def add(self, *text):
        self.text.extend(text)

    def claim(self, table, name, *key):
        """The C identifier for `name`, which the description gives at a table's key."""
        identifier = f"{self.prefix}_{name.upper()}"
        if identifier in self.lines:
            table.refuse(f"the C name {identifier} comes out twice, first for line {self.lines[identifier]}, "
                         "rename one", *key)
        self.lines[identifier] = table.line(*key)
        return identifier

    def free(self, name, ends):
        """`name`, with a number behind it if one of name_END is taken."""
        result = name
        while self.renames and any(f"{self.prefix}_{result}_{end}" in self.lines for end in ends):
            self.repeats[name] = self.repeats.get(name, 1) + 1
            result = f"{name}_{self.repeats[name]}"
        return result

    def define(self, table, name, value, *key):
        self.add(f"#define {self.claim(table, name, *key)} {value}")

    def define_array(self, dim, name):
        dim.c_name = name
        self.arrays.add(dim)
        self.define(dim.table, f"{name}_COUNT", number(dim.count))
        self.define(dim.table, f"{name}_STRIDE", hexadecimal(dim.stride))

    def define_bits(self, field, name):
        """Defines the position, mask and values of a field in a word."""
        ends = dict.fromkeys(("POS", "MASK", "COUNT", "STRIDE") if field.dims else ("POS", "MASK"))
        repeats = {}
        for value_name, value in field.values.items():
            end = wanted = c_name(value_name)
            while self.renames and end in ends:
                repeats[wanted] = repeats.get(wanted, 1) + 1
                end = f"{wanted}_{repeats[wanted]}"
            if end in ends:
                field.table.refuse(f"the C name {self.prefix}_{name}_{end} comes out twice, first for line "
                                   f"{field.table.line()}, rename one", "values", value_name)
            ends[end] = value, value_name
        name = self.free(name, ends)
        self.define(field.table, f"{name}_POS", number(field.lsb))
        self.define(field.table, f"{name}_MASK", hexadecimal(field.mask, field.width))
        for dim in field.dims:
            self.define_array(dim, name)
        for end, value in ends.items():
            if value is not None:
                self.define(field.table, f"{name}_{end}", number(value[0], field.width), "values", value[1])

    def refuse_edits(self, what, conditions):
        """Adds lines that do not compile if numbers were edited by hand. Why #if: static asserts need C11."""
        if conditions:
            self.add("", "#if " + " || \\\n    ".join(conditions),
                     f'#error "{what}: generate this header again"', "#endif")
