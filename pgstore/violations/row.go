// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"net/netip"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/clientaddr"
	"github.com/metehq/mete/policy"
)

// Others is the bucket_key of rows that count the overflow of denied keys.
const Others = "*"

// A rowID identifies denials that can share a row.
type rowID struct {
	key, limit, rule, reason string
	shadow                   bool
}

type row struct {
	id     rowID
	first  time.Time
	last   time.Time
	count  int64
	cost   bucket.Tokens // sum over all denials
	tokens bucket.Tokens // at the first denial; -1 if there was no bucket
	retry  time.Duration // of the first denial

	key, user, endpoint string       // in stored form; empty is unknown
	addr                netip.Prefix // zero is unknown

	source *source // of the denials; nil once the row is closed
}

func (r *row) add(cost bucket.Tokens, now time.Time) {
	r.count++
	if r.cost += cost; r.cost < 0 {
		r.cost = bucket.MaxTokens // saturates
	}
	if now.After(r.last) {
		r.last = now
	}
}

var (
	ipAttribute     = mustAttribute("ip:address")
	methodAttribute = mustAttribute("method")
	pathAttribute   = mustAttribute("path")
)

func mustAttribute(name string) policy.Attribute {
	a, _ := policy.ParseAttribute(name)
	return a
}

func (r *Recorder) newRow(i rowID, s *mete.Status, d *mete.Denial, now time.Time) *row {
	row := &row{id: i, first: now, last: now, count: 1, tokens: -1, retry: d.RetryAfter}
	if s != nil {
		row.cost, row.tokens, row.retry = s.Cost, s.Remaining(), s.RetryAfter
	}
	if i.key == Others {
		row.key = Others
		return row
	}
	if i.key != "" {
		row.key = r.storedText(kindKey, i.key, maxKey)
	}
	if user, ok := d.Attributes.Lookup(r.user); ok && user != "" {
		row.user = r.storedText(kindUser, user, maxUser)
	}
	if text, ok := d.Attributes.Lookup(ipAttribute); ok {
		if a, ok := parseAddr(text); ok {
			if row.addr = clientaddr.Network(a); r.config.Raw {
				row.addr = hostPrefix(a)
			}
		}
	}
	if !r.config.NoEndpoints {
		row.endpoint = requestEndpoint(d.Attributes)
	}
	return row
}

func (r *Recorder) storedText(what, text string, width int) string {
	if r.config.Raw {
		return sanitize(text, width)
	}
	return hashText(r.config.Key, what, text)
}

// requestEndpoint returns the known parts of a request's method and path.
func requestEndpoint(attrs policy.Attributes) string {
	method, _ := attrs.Lookup(methodAttribute)
	path, _ := attrs.Lookup(pathAttribute)
	for i := range len(path) {
		if path[i] == '?' || path[i] == '#' { // never store a query
			path = path[:i]
			break
		}
	}
	if method != "" && path != "" {
		method += " "
	}
	return sanitize(method+path, maxEndpoint)
}
