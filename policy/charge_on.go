// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math/bits"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
)

// A chargeOn lists the outcomes of requests that a limit charges. It is immutable.
type chargeOn struct {
	statuses [endStatus/64 + 1]uint64 // one bit each
	codes    uint32                   // one bit each
	shown    []string                 // the statuses, as in the file
	codeList []string                 // the gRPC codes, as in the file
	unit     int64                    // bytes of the response per token; 0 if its size does not matter
	unitText string                   // unit, as in the file
}

const (
	firstStatus = 200 // of final responses, apart from 101
	endStatus   = 600

	// maxOutcomes bounds the statuses of one list.
	maxOutcomes = 100

	// maxUnit bounds response_bytes: 1 TiB.
	maxUnit = 1 << 40
)

// charges reports whether c lists the outcome of r. Each of the two lists judges the responses of its own protocol. A
// list alone judges the others too, by their converted status or code. Without a list, every outcome is charged.
func (c *chargeOn) charges(r *Response) bool {
	if len(c.shown)+len(c.codeList) == 0 {
		return true
	}
	if len(c.codeList) > 0 && (r.GRPC != "" || len(c.shown) == 0) {
		return c.codes>>r.grpcCode()&1 == 1
	}
	s := r.httpStatus()
	return s >= 0 && s < endStatus && c.statuses[s/64]>>(s%64)&1 == 1
}

func (c *chargeOn) add(from, end int) {
	for s := from; s < end; s++ {
		c.statuses[s/64] |= 1 << (s % 64)
	}
}

// describe describes c for people: "401, 403 or 5xx; refunded otherwise".
func (c *chargeOn) describe() string {
	var lists []string
	if len(c.shown) > 0 {
		lists = append(lists, parse.Enumerate(c.shown, "or"))
	}
	if len(c.codeList) > 0 {
		lists = append(lists, "gRPC "+parse.Enumerate(c.codeList, "or"))
	}
	parts := []string{}
	if len(lists) > 0 {
		parts = append(parts, strings.Join(lists, ", "), "refunded otherwise")
	}
	if c.unit > 0 {
		parts = append(parts, "1 token per "+c.unitText+" of the response")
	}
	return strings.Join(parts, "; ")
}

// tokens returns the cost of a response body with n bytes, rounded up to a thousandth.
func (c *chargeOn) tokens(n int64) bucket.Tokens {
	hi, lo := bits.Mul64(uint64(n), uint64(bucket.Token))
	if hi >= uint64(c.unit) {
		return bucket.MaxTokens
	}
	quotient, rest := bits.Div64(hi, lo, uint64(c.unit))
	if rest > 0 {
		quotient++
	}
	return bucket.Tokens(min(quotient, uint64(bucket.MaxTokens)))
}

// AwaitsResponse reports whether the response to a request determines its final charge under l. The cost that the
// request is admitted with is then a reservation.
func (l *Limit) AwaitsResponse() bool {
	return l.chargeOn != nil || l.cost.field != "" || l.cost.ai != nil
}

// NeedsEnd reports whether the final charge under l depends on the part of the response that is still to come.
func (l *Limit) NeedsEnd(r *Response) bool {
	switch {
	case r.Ended || l.chargeOn != nil && r.isKnown() && !l.chargeOn.charges(r):
		return false
	case l.cost.ai != nil:
		return !r.isKnown() || r.Status < http.StatusBadRequest
	case l.cost.field != "":
		_, ok := r.field(l.cost.field)
		return !ok // the trailer may have it
	}
	return l.chargeOn != nil && l.chargeOn.unit > 0
}

// FinalCost returns the charge under l of a request with the response r. reserved is the cost that the request was
// admitted with. The charge is 0 if charge_on does not list the outcome. It is reserved if the outcome is unknown, or if
// the response names no valid cost.
func (l *Limit) FinalCost(reserved bucket.Tokens, r *Response) bucket.Tokens {
	switch on := l.chargeOn; {
	case !r.isKnown():
	case on != nil && !on.charges(r):
		return 0
	case l.cost.ai != nil:
		if final, ok := l.cost.ai.final(r, l.cost.min, l.cost.max); ok {
			if r.Unfinished && r.Status < http.StatusBadRequest {
				final = max(final, reserved)
			}
			return final
		}
	case l.cost.field != "":
		if value, ok := r.field(l.cost.field); ok {
			if named, valid := parseFinalCost(value); valid {
				return min(max(named, l.cost.min), l.cost.max)
			}
		}
	case on != nil && on.unit > 0 && r.Bytes >= 0:
		return min(max(on.tokens(r.Bytes), l.cost.min), l.cost.max)
	}
	return reserved
}

// parseFinalCost parses the cost that a response names, like the cost in a request. It may also be 0.
func parseFinalCost(s string) (bucket.Tokens, bool) {
	s = strings.Trim(s, " \t")
	if whole, fraction, _ := strings.Cut(s, "."); whole != "" && len(s) <= maxCostBytes && strings.Trim(whole+fraction, "0") == "" {
		return 0, s[len(s)-1] != '.'
	}
	return parseCost(s)
}

func (c *compiler) readRuleChargeOn(d *draft, n *parse.Node) { d.chargeOn = c.readChargeOn(n) }

// readChargeOn returns nil after an error.
func (c *compiler) readChargeOn(n *parse.Node) *chargeOn {
	o := c.Object(n, chargeOnTable)
	if o == nil {
		return nil
	}
	on := &chargeOn{}
	ok := true
	if f := o.Field("status"); f != nil {
		list, lok := c.Items(f, "status", true, maxOutcomes)
		ok = ok && lok
		for _, item := range list {
			ok = c.readStatus(on, item) && ok
		}
	}
	if f := o.Field("grpc"); f != nil {
		list, lok := c.Items(f, "grpc", true, len(grpcCodes))
		ok = ok && lok
		for _, item := range list {
			i := c.Choice(item, "grpc", GRPCCodes(), nil)
			if ok = ok && i >= 0; i >= 0 {
				on.codes |= 1 << i
				on.codeList = append(on.codeList, grpcCodes[i].name)
			}
		}
	}
	if f := o.Field("response_bytes"); f != nil {
		on.unit, on.unitText = c.readUnit(f)
		ok = ok && on.unit > 0
	}
	if len(o.Fields) == 0 {
		c.AddAt(n, "charge_on must not be empty", `list the statuses to charge, as in {"status": [401, 403]}`)
		return nil
	}
	if !ok {
		return nil
	}
	return on
}

// readUnit reads the number of bytes per token. It returns 0 after an error.
func (c *compiler) readUnit(n *parse.Node) (unit int64, text string) {
	digits := strings.TrimRight(n.Text, "BKMGTik")
	factor, ok := byteUnits[n.Text[len(digits):]]
	unit, err := strconv.ParseInt(digits, 10, 64)
	if n.Kind != parse.KindNumber && n.Kind != parse.KindText || !ok || err != nil || unit < 1 || unit > maxUnit/factor {
		c.Add(n, "response_bytes must be the number of bytes per token, at most 1TiB", `as in 1000 or "1KiB"`)
		return 0, ""
	}
	if text = n.Text; len(digits) == len(text) {
		text += "B"
	}
	return unit * factor, text
}

var byteUnits = map[string]int64{
	"": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// readStatus adds a status such as 401, or a class such as 5xx.
func (c *compiler) readStatus(on *chargeOn, n *parse.Node) bool {
	const hint = "a status such as 401, or a class such as 5xx"
	from, end := 0, 0
	switch digit, class := strings.CutSuffix(n.Text, "xx"); {
	case n.Kind != parse.KindNumber && n.Kind != parse.KindText:
	case class && len(digit) == 1 && digit >= "2" && digit <= "5":
		from = int(digit[0]-'0') * 100
		end = from + 100
	default:
		s, err := strconv.Atoi(n.Text)
		if err == nil && (s == http.StatusSwitchingProtocols || s >= firstStatus && s < endStatus) {
			from, end = s, s+1
		}
	}
	if end == 0 {
		c.Add(n, fmt.Sprintf("status must be a number from %d to %d, %d, or a class from 2xx to 5xx", firstStatus, endStatus-1, http.StatusSwitchingProtocols), "write "+hint)
		return false
	}
	if slices.Contains(on.shown, n.Text) {
		c.Add(n, "the status is in the list already", "")
		return false
	}
	on.add(from, end)
	on.shown = append(on.shown, n.Text)
	return true
}
