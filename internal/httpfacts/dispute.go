// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"fmt"
	"strings"

	"github.com/metehq/mete/policy"
)

// A dispute is a part of a request that rules and servers may interpret differently.
type dispute struct {
	kind   disputeKind
	source policy.Source // for disputedPair
	name   string        // name of the attribute
	sent   string        // name of the conflicting field, if different
}

type disputeKind uint8

const (
	undisputed disputeKind = iota
	disputedPlace
	disputedSlash
	disputedMethod
	disputedPair // query parameter or cookie
	repeatedHeader
	likeHeader
	trailerHeader
	codedBody    // a content coding of a request to a language model
	invalidBody  // name is the error
	upgradedCall // to a language model: name is the protocol
	manyBodies   // there is no memory for the body, or none for this client: see MaxBodyBytes
)

// addDispute records d unless there is an earlier dispute, or no enforced rule reads the attribute.
func (f *Facts) addDispute(d dispute) {
	if f.dispute.kind == undisputed && (f.policy == nil || f.policy.Enforces(f.asked, f.now)) {
		f.dispute = d
	}
}

// Ambiguity describes, for the client, a part of the request that servers may interpret differently than the rules
// that read it. It is empty if there is none. The adapters reject such a request, because servers could serve it
// as another request than the one that was counted. Only parts that enforced rules read are disputed: see
// [Facts.SetPolicy].
//
//   - a path that servers interpret differently, a target without a path such as "http:http://host/path", an
//     invalid Host, and a query with a "#".
//   - an escaped slash or a backslash that decides whether a path template matches, or its texts.
//   - a header field that occurs twice and is not a list, or that is also announced as a trailer.
//   - a query parameter or cookie that occurs twice, has two spellings ("api_key" and "API.key"), or cannot be
//     decoded.
//   - a method together with a field such as X-HTTP-Method-Override.
//   - a claim if Authorization occurs twice.
//   - a request to a language model with a compressed or invalid body, because its tokens are unknown.
//   - an upgrade of its connection, or a field with another method.
func (f *Facts) Ambiguity() string {
	d := f.dispute
	if d.kind == undisputed && f.disputesBody() {
		d = f.body.dispute
	}
	switch d.kind {
	case undisputed:
		return ""
	case disputedMethod:
		return fmt.Sprintf("Some servers take the method from the header field %q. Remove it, and send that method itself.", d.sent)
	case disputedSlash:
		return "Servers differ in whether an escaped slash or a backslash ends a segment of the path. Send the path without it."
	case repeatedHeader:
		return fmt.Sprintf("The header field %q occurs more than once, and servers differ in which one they use. Send it once.", d.name)
	case likeHeader:
		return fmt.Sprintf("Some servers read the header field %q as %q. Send it under one name, with hyphens.", d.sent, d.name)
	case trailerHeader:
		return fmt.Sprintf("The field %q is announced as a trailer, which some servers merge into the header. Send it in the header.", d.name)
	case manyBodies:
		return fmt.Sprintf("The server has no memory for further bodies%s. Try again.", d.name)
	case upgradedCall:
		return fmt.Sprintf("The tokens of messages over an upgraded connection (%q) cannot be counted. Send the request with POST, and without Upgrade.", d.name)
	case codedBody:
		return fmt.Sprintf("The body has the content coding %q, so that its tokens cannot be counted. Send it without a content coding.", d.name)
	case invalidBody:
		return invalidBodyText(d.name)
	case disputedPair:
		what := "query parameter"
		if d.source == policy.SourceCookie {
			what = "cookie"
		}
		return fmt.Sprintf("The %s %q occurs more than once or in another spelling, or cannot be decoded. Servers differ in how they read that. Send it once.", what, d.name)
	}
	return AmbiguousTarget
}

// Overloaded reports whether the request is disputed because there is no memory for its body.
func (f *Facts) Overloaded() bool {
	return f.dispute.kind == undisputed && f.body.dispute.kind == manyBodies && f.disputesBody()
}

// disputesBody reports whether the body is disputed, and a rule that counts its tokens is enforced.
func (f *Facts) disputesBody() bool {
	return f.body.dispute.kind != undisputed && f.enforcesAI()
}

func (f *Facts) enforcesAI() bool { return f.policy == nil || f.policy.EnforcesAI(f.now) }

func invalidBodyText(err string) string {
	return fmt.Sprintf("The tokens of this request cannot be counted: %s.", strings.TrimPrefix(err, "ai: "))
}

// AmbiguousTarget describes a disputed path, host or query.
const AmbiguousTarget = "Servers interpret the path or the host of this request differently. Resolve dot segments before you send it, and set the host."

// methodOverrides are the fields from which servers take another method: Rack, Laravel, Symfony, Express, ASP.NET
// and OData read one or all of them.
var methodOverrides = [...]string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

func (f *Facts) disputeMethod() {
	if sent := f.methodOverride(); sent != "" {
		f.addDispute(dispute{kind: disputedMethod, sent: sent})
	}
}

// methodOverride returns the name of a field from which a server could take another method, or "".
func (f *Facts) methodOverride() string {
	for _, name := range methodOverrides {
		if _, there := f.r.Header[name]; there {
			return name
		}
	}
	if f.disputesLookAlikes() {
		for _, name := range methodOverrides {
			if sent := f.lookAlike(name); sent != "" {
				return sent
			}
		}
	}
	return ""
}
