// SPDX-License-Identifier: Apache-2.0

package ratelimitfields

import (
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/dialect"
)

const anyDialect = dialect.Draft11 | dialect.Legacy | dialect.X

// writeTokens writes the fields that clients of language models read, if a limit of tokens applies.
func (w *Writer) writeTokens(s *fieldBuilder, d *mete.Decision) {
	limits, tokens, requests := d.Limits(), -1, -1 // indexes: pointers would move the decision to the heap
	for i := range limits {
		status := &limits[i]
		if !w.shows(status, anyDialect) || status.Limit.HoldsSlot() || status.Limit.Money() {
			continue
		}
		if status.Limit.AI() {
			if tokens < 0 || status.Room() < limits[tokens].Room() {
				tokens = i
			}
		} else if requests < 0 || status.Room() < limits[requests].Room() {
			requests = i
		}
	}
	if tokens < 0 {
		return
	}
	writeModelTrio(s, tokensLimit, &limits[tokens])
	if requests >= 0 {
		writeModelTrio(s, requestsLimit, &limits[requests])
	}
}

func writeModelTrio(s *fieldBuilder, first field, status *mete.Status) {
	s.intField(first, maxQuota(status.Limit.Bucket).Whole())
	s.intField(first+1, min(status.Room().Whole(), maxInteger))
	if full := status.FullAfter(); full != bucket.Never {
		s.textField(first+2, full.Round(time.Millisecond).String())
	}
}
