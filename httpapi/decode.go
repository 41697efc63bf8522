// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/store"
)

// A decoder reads requests. Its requests and attributes are valid until release; strings stay valid.
type decoder struct {
	reader
	requests []mete.Request
	facts    []*facts // attributes of the requests; the first used entries are taken
	used     int
	names    nameCache
	maxWait  time.Duration // maximum max_wait
}

func (d *decoder) release() {
	clear(d.requests)
	clear(d.path[:cap(d.path)])
	for _, f := range d.facts[:d.used] {
		f.clear()
	}
	d.reader = reader{path: d.path[:0]}
	d.requests, d.used = d.requests[:0], 0
}

// The members of a request.
var (
	requestMembers = []string{"attributes", "cost", "max_wait", "id", "slot"}
	bodyMembers    = append([]string{"requests"}, requestMembers...)
)

// decode reads the body of a POST: one request, or a batch of at most [MaxBatch]. longest bounds every max_wait.
func (d *decoder) decode(body []byte, longest time.Duration) (reqs []mete.Request, batch bool, p *api.Problem) {
	if p := d.open(body); p != nil {
		return nil, false, p
	}
	d.maxWait = longest
	var single mete.Request
	count := 0
	for name := range d.members(bodyMembers) {
		if count++; name != "requests" {
			d.member(name, &single)
			continue
		}
		batch = true
		for range d.elements() {
			if len(d.requests) == MaxBatch {
				d.fail(fmt.Sprintf("the batch is longer than %d requests; send several batches", MaxBatch))
				continue
			}
			var req mete.Request
			for name := range d.members(requestMembers) {
				d.member(name, &req)
			}
			d.add(req)
		}
	}
	switch {
	case !batch:
		d.add(single)
	case count > 1:
		d.fail(`"requests" cannot be combined with other members; move them into the requests of the batch`)
	case len(d.requests) == 0:
		d.fail("the batch is empty; send at least one request")
	}
	return d.requests, batch, d.close()
}

func (d *decoder) add(req mete.Request) {
	if req.Attributes == nil {
		d.fail(`"attributes" is missing; send {} for a request without any`)
	}
	d.requests = append(d.requests, req)
}

func (d *decoder) member(name string, req *mete.Request) {
	switch name {
	case "attributes":
		req.Attributes = d.attributes()
	case "cost":
		req.Cost = mete.TokensOf(d.amount("the cost", ", or leave it out",
			"the cost is 0, which spends nothing; use peek, or leave the cost out to use the policy's cost"))
	case "max_wait":
		const hint = "write a number and a unit in a string, such as \"500ms\" or \"2s\""
		text := d.wantString("the longest wait is not a string; " + hint)
		wait, err := bucket.ParseDuration(text)
		if req.MaxWait = wait; err != nil {
			d.fail(fmt.Sprintf("%q is not a duration; %s", clip(text), hint))
		} else if wait > d.maxWait {
			d.fail(fmt.Sprintf("%q is more than %v, the longest wait that this server accepts; send a shorter one", clip(text), prose.Duration(d.maxWait)))
		}
	case "slot":
		const hint = "send the slot of the response to the take"
		id, err := bucket.ParseSlotID(d.wantString("the slot is not a string; " + hint))
		if req.Slot = id; err != nil {
			d.fail("the slot is not 32 hexadecimal digits; " + hint)
		}
	case "id":
		const hint = "; write up to 128 printable ASCII characters in a string, or leave it out"
		req.ID = d.wantString("the id is not a string" + hint)
		switch {
		case req.ID == "":
			d.fail("the id is empty" + hint)
		case len(req.ID) > store.MaxIDBytes:
			d.fail("the id is too long" + hint)
		case strings.ContainsFunc(req.ID, func(r rune) bool { return r < ' ' || r > '~' }):
			d.fail("the id has invalid characters" + hint)
		}
	}
}

// amount reads an amount. Errors start with name and end with hint. zero is the error text for 0, or empty if
// 0 is valid.
func (d *decoder) amount(name, hint, zero string) bucket.Tokens {
	const longest = 64 // bytes, more than any amount that can be represented has
	hint = "; write a number above 0 with at most 3 decimals, such as 1 or 0.25" + hint
	switch text, ok := d.number(); {
	case !ok && d.startsValue() && !d.startsNumber():
		d.fail(name + " is not a number" + hint)
	case !ok:
		d.failSyntax("a number")
	case text[0] == '-':
		d.fail(name + " is negative" + hint)
	case len(text) > longest:
		d.fail(name + " has too many digits" + hint)
	default:
		t, err := bucket.ParseTokens(text)
		if err != nil {
			d.fail(strings.TrimPrefix(err.Error(), bucket.ErrTokens.Error()+": ") + hint)
		} else if t == 0 && zero != "" {
			d.fail(zero)
		}
		return t
	}
	return 0
}
