// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"

	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/internal/clientaddr"
	"github.com/metehq/mete/policy"
)

const (
	maxKeyID     = 128 // longer IDs are replaced by their hash
	maxShownRune = 48  // per attribute value
)

// keyNames names keys in a report, by value or by number. A key has the same number in all lists of the report.
type keyNames struct {
	show    bool
	numbers map[string]int // by key ID; nil before the first key
}

func (n *keyNames) name(entry *tally) string {
	if n.show {
		return entry.key
	}
	number, known := n.numbers[entry.id]
	if !known {
		if n.numbers == nil {
			n.numbers = map[string]int{}
		}
		number = len(n.numbers) + 1
		n.numbers[entry.id] = number
	}
	return "key " + strconv.Itoa(number)
}

// appendKeyID appends an ID that is unique among the keys of all rules.
func appendKeyID(b []byte, req *trace.Request, r *policy.Rule) []byte {
	b = append(b, r.Name...)
	for _, a := range r.LimitKeys {
		value, ok := keyValue(req, a)
		if !ok {
			b = append(b, 0)
			continue
		}
		b = binary.AppendUvarint(append(b, 1), uint64(len(value)))
		b = append(b, value...)
	}
	if len(b) > maxKeyID {
		sum := sha256.Sum256(b)
		b = append(b[:0], sum[:]...)
	}
	return b
}

// describeKey formats a key, such as "ip:address=192.0.2.1 path=/login".
func describeKey(req *trace.Request, r *policy.Rule) string {
	if len(r.LimitKeys) == 0 {
		return "(everyone)"
	}
	parts := make([]string, len(r.LimitKeys))
	for i, a := range r.LimitKeys {
		value, ok := keyValue(req, a)
		if !ok {
			value = "(missing)"
		}
		parts[i] = a.Spelling() + "=" + shownValue(value)
	}
	return strings.Join(parts, " ")
}

// shownValue formats a value from a request on one line. It shortens long values and quotes values with spaces or
// special characters.
func shownValue(value string) string {
	if len(value) > maxShownRune {
		value = strings.ToValidUTF8(value[:maxShownRune], "") + "…"
	}
	if quoted := strconv.Quote(value); value == "" || quoted != `"`+value+`"` || strings.ContainsRune(value, ' ') {
		return quoted
	}
	return value
}

// describeRequest returns the method and path, such as "GET /login", or "" if the trace has neither.
func describeRequest(req *trace.Request) string {
	method, ok := req.Lookup(policy.Attribute{Source: policy.SourceMethod})
	path, has := req.Lookup(policy.Attribute{Source: policy.SourcePath})
	switch {
	case ok && has:
		return shownValue(method) + " " + shownValue(path)
	case has:
		return shownValue(path)
	case ok:
		return shownValue(method)
	}
	return ""
}

// keyValue returns the value of an attribute as keys contain it: IPv6 addresses are cut to their prefix.
func keyValue(req *trace.Request, a policy.Attribute) (string, bool) {
	value, ok := req.Lookup(a)
	if !ok || a.Source != policy.SourceIP || !strings.Contains(value, ":") {
		return value, ok
	}
	addr, err := netip.ParseAddr(value)
	if err != nil {
		return value, true
	}
	if addr = clientaddr.Canonical(addr); addr.Is4() {
		return addr.String(), true
	}
	if prefix, err := addr.Prefix(a.Bits); err == nil {
		return prefix.String(), true
	}
	return value, true
}
