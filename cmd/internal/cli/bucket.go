// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/internal/visible"
)

// bucketCode returns exitOK if the bucket admits a request of the usual cost.
func bucketCode(b *api.Bucket) int {
	if b.AllowedBy == nil && !b.Shadow && (b.BlockedBy != nil || b.RetryAfter != 0) {
		return exitNo
	}
	return exitOK
}

func bucketText(b *api.Bucket) string {
	var t strings.Builder
	fmt.Fprintf(&t, "%s\n  %s of %s left", display.EscapeUnsafe(b.Key), b.Remaining, b.Capacity)
	switch full := b.FullAfter.Duration(); {
	case full == 0:
		t.WriteString(", full")
	case full != bucket.Never:
		t.WriteString(", full again in " + prose.Duration(full))
	}
	if b.Owed != 0 {
		fmt.Fprintf(&t, "; %s owed", b.Owed)
	}
	switch wait := b.RetryAfter.Duration(); wait {
	case 0:
	case bucket.Never:
		fmt.Fprintf(&t, "; a request of %s never passes", b.Cost)
	default:
		fmt.Fprintf(&t, "; a request of %s passes in %s", b.Cost, prose.Duration(wait))
	}
	fmt.Fprintf(&t, "\n  limit %s, %s: %s", b.Limit, b.Algorithm, b.Words)
	if b.Mode != "enforce" {
		t.WriteString("; mode " + b.Mode)
	}
	if b.Shadow {
		t.WriteString(", for this key in shadow")
	}
	t.WriteByte('\n')
	for _, s := range b.Slots {
		fmt.Fprintf(&t, "  slot %s ends in %s\n", visible.Text(s.ID), prose.Duration(s.Left.Duration()))
	}
	if b.Override != nil {
		fmt.Fprintf(&t, "  another limit by override %s: %s\n", b.Override.ID, display.EscapeUnsafe(b.Override.Reason))
	}
	if b.BlockedBy != nil {
		fmt.Fprintf(&t, "  blocked by override %s: %s\n", b.BlockedBy.ID, display.EscapeUnsafe(b.BlockedBy.Reason))
	}
	if b.AllowedBy != nil {
		fmt.Fprintf(&t, "  allowed by override %s: %s\n", b.AllowedBy.ID, display.EscapeUnsafe(b.AllowedBy.Reason))
	}
	return t.String()
}
