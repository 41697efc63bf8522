// SPDX-License-Identifier: Apache-2.0

package jwtclaims_test

import (
	"testing"

	"github.com/metehq/mete/jwtclaims"
	"github.com/metehq/mete/policy"
)

// plan is the attribute that tiers are made of.
var plan = policy.Attribute{Source: policy.SourceJWT, Name: "plan"}

func TestAttribute_RememberedAllocatesNothing(t *testing.T) {
	v := start(t, jwtclaims.Config{KeySet: file(t, keySet(jwk("rsa", rsaKey())))})
	r := request("Bearer " + sign(t, "RS256", "rsa", rsaKey(), claims(nil)))
	v.Attribute(r, plan)
	if got := testing.AllocsPerRun(100, func() { v.Attribute(r, plan) }); got != 0 {
		t.Errorf("a remembered token allocates %v times, want 0", got)
	}
}

func BenchmarkAttribute_Remembered(b *testing.B) {
	v := start(b, jwtclaims.Config{KeySet: file(b, keySet(jwk("rsa", rsaKey())))})
	r := request("Bearer " + sign(b, "RS256", "rsa", rsaKey(), claims(nil)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := v.Attribute(r, plan); !ok {
			b.Fatal("the token was refused")
		}
	}
}

// BenchmarkAttribute_Forged measures the cost of a forged token.
func BenchmarkAttribute_Forged(b *testing.B) {
	v := start(b, jwtclaims.Config{KeySet: file(b, keySet(jwk("rsa", rsaKey())))})
	token := []byte(sign(b, "RS256", "rsa", otherRSAKey(), claims(nil)))
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		for i, rest := 10, n; i < 20; i, rest = i+1, rest/64 {
			token[len(token)-i] = letters[rest%64]
		}
		if _, ok := v.Attribute(request("Bearer "+string(token)), plan); ok {
			b.Fatal("a forged token was accepted")
		}
	}
}
