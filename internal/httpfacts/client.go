// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

var subject, _ = policy.ParseAttribute("jwt:sub") // always valid

// maxCredentialBytes is the part of a credential that counts, from its end. Tokens of one issuer can start alike
// and end in different signatures.
const maxCredentialBytes = 256

const clientParts = 6

// Client returns the values that spread denied clients: the address, the subject or credential, and the deciding
// limit with the values of its key. With only the key, all clients of a bucket would get the same wait; with only
// the address, all clients behind a proxy. The values must not leave the process unhashed.
func (f *Facts) Client(d *mete.Decision) []string {
	address, _ := f.Address()
	parts := append(make([]string, 0, clientParts), address, f.credential())
	decider := d.Decider()
	if decider == nil {
		return parts
	}
	if decider.Limit != nil {
		parts = append(parts, decider.Limit.Name)
	}
	for _, a := range decider.Rule.LimitKeys {
		value, _ := f.Lookup(a)
		parts = append(parts, value)
	}
	return parts
}

// credential returns the subject of the request's token if the policy reads tokens and the token has a subject.
// Otherwise it returns the end of the Authorization field, which changes when the client renews its token.
func (f *Facts) credential() string {
	if f.policy != nil && f.policy.Uses(policy.SourceJWT) {
		if sub, ok := f.Lookup(subject); ok {
			return sub
		}
	}
	value := f.r.Header.Get("Authorization")
	return value[max(0, len(value)-maxCredentialBytes):]
}
