/* What macOS declares here. SPDX-License-Identifier: MIT */
char ***_NSGetEnviron(void);
