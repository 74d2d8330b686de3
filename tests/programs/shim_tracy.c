/* A program written against Tracy's C API, compiled with examples/shims instead: in C and in C++.
   SPDX-License-Identifier: MIT */
#include <tracy/TracyC.h>

#include <stdio.h>
#include <string.h>

static void zones(int active)
{
    TracyCZoneN(zone, "outer", active);
    TracyCZoneText(zone, "a text that is longer", 6);
    TracyCZoneValue(zone, 9);
    {
        TracyCZoneC(inner, 0xFF0000, 1);
        TracyCZoneColor(inner, 0x00FF00);
        TracyCZoneName(inner, "later", 5);
        TracyCZoneValue(zone, 10);       /* not of the innermost */
        TracyCZoneEnd(inner)
    }
    TracyCZoneEnd(zone);
}

int main(void)
{
    TracyCLockCtx lock;
    int memory = 0;
    TracyCSetThreadName("named by Tracy");
    TracyCAppInfo("version 3", 9);
    zones(1);
    zones(0);
    TracyCFrameMark
    TracyCFrameMarkNamed("view");
    TracyCFrameMarkStart("physics");
    TracyCFrameMarkEnd("physics");
    TracyCPlot("load", 0.5);
    TracyCPlotI("depth", -3);
    TracyCPlotConfig("load", TracyPlotFormatPercentage, 0, 1, 0);
    TracyCMessageL("ready");
    TracyCMessageLC("in colour", 0xFF);
    TracyCAlloc(&memory, sizeof memory);
    TracyCFree(&memory);
    TracyCLockAnnounce(lock);
    TracyCLockBeforeLock(lock);
    TracyCLockAfterLock(lock);
    TracyCLockTerminate(lock);
    printf("%d\n", TracyCIsConnected + memory);
#ifdef TRACY_ENABLE
    static const struct ___tracy_source_location_data at = { NULL, "by function", "file", 1, 0 };
    const TracyCZoneCtx own = ___tracy_emit_zone_begin_callstack(&at, 10, 1);
    ___tracy_emit_zone_end(own);
    return lock != NULL;
#else
    return 0;
#endif
}
