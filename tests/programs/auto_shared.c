/* A shared library for auto_calls.cpp; with -DPLUGIN another one, which is opened while the program runs.
   SPDX-License-Identifier: MIT */
int shared_entry(int count);
int plugin_entry(int count);

static int inside(int n)
{
    return n / 2;
}

#ifdef PLUGIN
static int plugin_step(int n)
{
    return inside(n) + 1;
}

int plugin_entry(int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++) sum += plugin_step(i);
    return sum;
}

#else
static int shared_step(int n)
{
    return n ? inside(n) + shared_step(n / 3) : 0;
}

int shared_entry(int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++) sum += shared_step(i);
    return sum;
}
#endif /* !PLUGIN */
