# SPDX-License-Identifier: MIT
"""The lines of npuprof's own JSON writer, one event each. Anything else is read by the strict reader."""

import re

# The lines of npuprof's own writer, one event each. Anything else is read by the strict reader of `check`.
# Why possessive and few groups: these two lines are half of the time that a large trace takes.
STRING = rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
X_LINE = re.compile(rb'\{"ph":"X","name":(' + STRING + rb'(?:,"cat":' + STRING + rb')?+),"pid":(\d++,"tid":\d++),"ts":(\d++\.\d\d\d),'
                    rb'"dur":(\d++\.\d\d\d)(.*+)\n')
LABEL = re.compile(rb'(' + STRING + rb')(?:,"cat":(' + STRING + rb'))?')
FLOW_LINE = re.compile(rb'\{"ph":"([sf])","name":(' + STRING + rb'),"pid":(\d++,"tid":\d++)(?:,"bp":"e")?+,"cat":' + STRING +
                       rb',"id":(\d++),"ts":(\d++\.\d\d\d)\},\n')
HEAD = b'{"traceEvents":['
# Read at once.
BLOCK = 1 << 19
