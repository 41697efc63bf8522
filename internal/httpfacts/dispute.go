// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"fmt"

	"github.com/metehq/mete/policy"
)

// A dispute is something in a request that a rule reads in one way and servers may
// read in another.
type dispute struct {
	kind   disputeKind
	source policy.Source // of disputedPair
	name   string        // of the attribute
	sent   string        // the field that disputes it, where that has another name
}

type disputeKind uint8

const (
	undisputed disputeKind = iota
	disputedPlace
	disputedMethod
	disputedPair // of a query or a cookie
	repeatedHeader
	likeHeader
	trailerHeader
)

// disputed notes d, unless something is disputed already, or no enforced rule reads the
// attribute.
func (f *Facts) disputed(d dispute) {
	if f.dispute.kind == undisputed && (f.policy == nil || f.policy.Enforces(f.asked, f.now)) {
		f.dispute = d
	}
}

// Dispute describes what servers may read differently from the rules that have asked
// for it, in sentences for the client. It is empty where there is nothing like that.
// A front door refuses such a request: servers could serve it as another one than the
// one that was counted. Only what enforced rules have asked for is disputed: see
// [Facts.Under].
//
//   - a path that servers read differently, a target without a path such as
//     "http:http://host/path", a Host that is none, and a query with a "#".
//   - a header field that occurs twice and is no list, and one that is also announced
//     as a trailer.
//   - a query parameter or a cookie that occurs twice, that has two spellings
//     ("api_key" and "API.key"), or that cannot be decoded.
//   - a method beside a field such as X-HTTP-Method-Override.
//   - a claim, where Authorization occurs twice.
func (f *Facts) Dispute() string {
	switch d := f.dispute; d.kind {
	case undisputed:
		return ""
	case disputedMethod:
		return fmt.Sprintf("Some servers take the method from the header field %q. Leave it out, and send that method itself.", d.sent)
	case repeatedHeader:
		return fmt.Sprintf("The header field %q occurs more than once, and servers differ in which one they read. Send it once.", d.name)
	case likeHeader:
		return fmt.Sprintf("Some servers read the header field %q as %q. Send it under one name, with hyphens.", d.sent, d.name)
	case trailerHeader:
		return fmt.Sprintf("The field %q is announced as a trailer, which some servers add to the header. Send it in the header.", d.name)
	case disputedPair:
		what := "query parameter"
		if d.source == policy.SourceCookie {
			what = "cookie"
		}
		return fmt.Sprintf("The %s %q occurs more than once or in another spelling, or cannot be decoded. Servers differ in how they read that. Send it once.", what, d.name)
	}
	return DisputedPlace
}

// DisputedPlace describes a disputed path, host or query.
const DisputedPlace = "Servers read the path or the host of this request differently. Resolve dot segments before it is sent, and name a host."

// overrides are the fields that make servers take another method than the one of the
// request: Rack, Laravel, Symfony, Express, ASP.NET and OData read one or all of them.
var overrides = [...]string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// disputeMethod disputes the method of a request that names another one in a field.
func (f *Facts) disputeMethod() {
	for _, name := range overrides {
		if _, there := f.r.Header[name]; there {
			f.disputed(dispute{kind: disputedMethod, sent: name})
		}
	}
	if !f.disputesLookAlikes() {
		return
	}
	for _, name := range overrides {
		if sent := f.lookAlike(name); sent != "" {
			f.disputed(dispute{kind: disputedMethod, sent: sent})
		}
	}
}
