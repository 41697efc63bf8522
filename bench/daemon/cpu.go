// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc: USER_HZ, which is 100 everywhere.
const tick = 10 * time.Millisecond

// CPU returns the processor time of a process, user and system. It is 0 on systems without /proc.
func CPU(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field is the name in parentheses, which may contain any character.
	_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
	var user, system time.Duration
	if fields := strings.Fields(rest); len(fields) > 12 {
		_, _ = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	}
	return (user + system) * tick
}
