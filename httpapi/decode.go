// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/store"
)

// decode reads the body of a POST: one request, or a batch of at most [MaxBatch].
// No max_wait may be longer than longest.
func (d *decoder) decode(body []byte, longest time.Duration) (reqs []mete.Request, batch bool, p *api.Problem) {
	d.longest = longest
	if p := d.text8(body); p != nil {
		return nil, false, p
	}
	batch = d.body()
	if d.problem == nil && !d.end() {
		d.fail("there is more after the end of the request; send one JSON object")
	}
	return d.requests, batch, d.problem
}

// text8 makes body what is read.
func (d *decoder) text8(body []byte) *api.Problem {
	if !utf8.Valid(body) {
		// What is invalid would be replaced somewhere, and give different clients
		// one key.
		return api.NewProblem(http.StatusBadRequest, "the body is not UTF-8; send JSON in UTF-8")
	}
	d.text = string(body) // a copy: hooks may keep strings
	return nil
}

// The members of a request.
var (
	requestMembers = []string{"attributes", "cost", "max_wait", "id"}
	bodyMembers    = append([]string{"requests"}, requestMembers...)
)

func (d *decoder) body() (batch bool) {
	var single mete.Request
	count := 0
	for name := range d.members(bodyMembers) {
		if count++; name == "requests" {
			batch = true
			d.batch()
		} else {
			d.member(name, &single)
		}
	}
	switch {
	case !batch:
		d.complete(single)
		d.requests = append(d.requests, single)
	case count > 1:
		d.fail(`"requests" stands beside other members; put those into the requests of the batch`)
	case len(d.requests) == 0:
		d.fail("the batch is empty; send at least one request")
	}
	return batch
}

func (d *decoder) batch() {
	for range d.elements() {
		if len(d.requests) == MaxBatch {
			d.fail(fmt.Sprintf("the batch is longer than %d requests; send several batches", MaxBatch))
			continue
		}
		var req mete.Request
		for name := range d.members(requestMembers) {
			d.member(name, &req)
		}
		d.complete(req)
		d.requests = append(d.requests, req)
	}
}

// complete checks what no single member can.
func (d *decoder) complete(req mete.Request) {
	if req.Attributes == nil {
		d.fail(`"attributes" is missing; send {} for a request without any`)
	}
}

func (d *decoder) member(name string, req *mete.Request) {
	switch name {
	case "attributes":
		req.Attributes = d.attributes()
	case "cost":
		req.Cost = mete.TokensOf(d.cost())
	case "max_wait":
		req.MaxWait = d.maxWait()
	case "id":
		req.ID = d.id()
	}
}

// cost reads what a request names as its cost.
func (d *decoder) cost() bucket.Tokens {
	return d.amount("the cost", ", or leave it out",
		"the cost is 0, which spends nothing; peek instead, or leave it out for the cost that the policy says")
}

// amount reads an amount above 0 exactly as it is written, and calls it by name. The hint
// is about what else to write, and zero is the detail for an amount of 0.
func (d *decoder) amount(name, hint, zero string) bucket.Tokens {
	hint = "; write a number above 0 with at most 3 decimals, such as 1 or 0.25" + hint
	switch text, ok := d.number(); {
	case !ok && startsValue(d.peek()) && !startsNumber(d.peek()):
		d.fail(name + " is not a number" + hint)
	case !ok:
		d.mistake("a number")
	case text[0] == '-':
		d.fail(name + " is negative" + hint)
	case len(text) > numberBytesMax:
		d.fail(name + " has too many digits" + hint)
	default:
		t, err := bucket.ParseTokens(text)
		if err != nil {
			d.fail(strings.TrimPrefix(err.Error(), bucket.ErrTokens.Error()+": ") + hint)
		} else if t == 0 {
			d.fail(zero)
		}
		return t
	}
	return 0
}

// id reads what names a request for all attempts at it.
func (d *decoder) id() string {
	const hint = "; write up to 128 printable ASCII characters in a string, or leave it out"
	id := d.want("the id is not a string" + hint)
	switch {
	case d.problem != nil:
	case id == "":
		d.fail("the id is empty" + hint)
	case len(id) > store.MaxIDBytes:
		d.fail("the id is too long" + hint)
	case strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r > '~' }):
		d.fail("the id has other characters" + hint)
	}
	return id
}

// numberBytesMax is longer than any amount that can be represented.
const numberBytesMax = 64

func (d *decoder) maxWait() time.Duration {
	const hint = "write a number and a unit in a string, such as \"500ms\" or \"2s\""
	text := d.want("the longest wait is not a string; " + hint)
	if d.problem != nil {
		return 0
	}
	wait, err := bucket.ParseDuration(text)
	if err != nil {
		d.fail(fmt.Sprintf("%q is not a duration; %s", clip(text), hint))
	} else if wait > d.longest {
		d.fail(fmt.Sprintf("%q is more than %v, the longest wait that this server accepts; send a shorter one", clip(text), prose.Duration(d.longest)))
	}
	return wait
}
