// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"time"
)

// FormatDuration formats d without trailing zero units: 1m, not 1m0s.
func FormatDuration(d time.Duration) string {
	for _, unit := range []struct {
		name string
		is   time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}} {
		if d > 0 && d%unit.is == 0 {
			return fmt.Sprintf("%d%s", d/unit.is, unit.name)
		}
	}
	return d.String()
}
