// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"strconv"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/seconds"
)

// appendDecision appends d in the form of [Decision]. Shadow limits are left
// out: nothing a client sees may depend on them.
func appendDecision(b []byte, d *mete.Decision) []byte {
	b = strconv.AppendBool(append(b, `{"allowed":`...), d.Allowed)
	b = appendString(append(b, `,"rule":`...), d.Rule)
	b = appendString(append(b, `,"reason":`...), d.Reason)
	b = seconds.AppendDuration(append(b, `,"retry_after":`...), d.RetryAfter)
	if d.Wait > 0 {
		b = seconds.AppendDuration(append(b, `,"wait":`...), d.Wait)
	}
	b = strconv.AppendBool(append(b, `,"degraded":`...), d.Degraded)
	if d.Degraded {
		b = appendString(append(b, `,"failure":`...), string(d.Failure))
	}
	if d.Override != nil {
		b = appendString(append(b, `,"override":`...), d.Override.ID)
	}
	b = append(b, `,"limits":[`...)
	for i := range d.Limits() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendLimit(b, &d.Limits()[i])
	}
	return append(b, "]}"...)
}

func appendLimit(b []byte, s *mete.Status) []byte {
	b = appendString(append(b, `{"rule":`...), s.Rule.Name)
	b = appendString(append(b, `,"limit":`...), s.Limit.Name)
	b = strconv.AppendInt(append(b, `,"remaining":`...), s.Room().Whole(), 10)
	if owed := s.Owed(); owed > 0 {
		b = append(append(b, `,"owed":`...), owed.String()...)
	}
	b = seconds.AppendDuration(append(b, `,"retry_after":`...), s.RetryAfter)
	b = seconds.AppendDuration(append(b, `,"full_after":`...), s.FullAfter())
	if s.Limit.Override != nil {
		b = appendString(append(b, `,"override":`...), s.Limit.Override.ID)
	}
	if len(s.Limit.Stages) > 0 {
		if stage := s.Stage(); stage != nil {
			b = appendString(append(b, `,"stage":`...), stage.Share)
		}
	}
	return append(b, '}')
}

// appendString appends s as a JSON string. Names of rules are nearly always
// plain, and those need no detour through encoding/json.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
