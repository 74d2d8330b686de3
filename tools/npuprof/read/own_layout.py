# SPDX-License-Identifier: MIT
"""The layout of npuprof's own JSON writer: a head, then one event in each line.

Lines of this layout are read by pattern, many at a time. Why possessive and few groups: matching X_LINE and
FLOW_LINE is half of the time that a large trace takes.
"""

import re

HEAD = b'{"traceEvents":['
STRING = rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
IDS = rb'"pid":(\d++,"tid":\d++)'
TIME = rb'(\d++\.\d\d\d)'
X_LINE = re.compile(rb'\{"ph":"X","name":(' + STRING + rb'(?:,"cat":' + STRING + rb')?+),' + IDS
                    + rb',"ts":' + TIME + rb',"dur":' + TIME + rb'(.*+)\n')
LABEL = re.compile(rb'(' + STRING + rb')(?:,"cat":(' + STRING + rb'))?')
FLOW_LINE = re.compile(rb'\{"ph":"([sf])","name":(' + STRING + rb'),' + IDS
                       + rb'(?:,"bp":"e")?+,"cat":' + STRING + rb',"id":(\d++),"ts":' + TIME + rb'\},\n')
FLOWS = b'{"ph":"s"', b'{"ph":"f"'      # how the lines of arrows begin
BLOCK = 1 << 19                         # bytes that are read at a time
