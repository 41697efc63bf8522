// SPDX-License-Identifier: Apache-2.0

package dropin_test

import (
	"testing"

	"github.com/metehq/mete/envoyapi/dropin"
)

const matching = `
domain: shop
descriptors:
- key: user
  value: alice
  rate_limit: {unit: minute, requests_per_unit: 1}
- key: user
  rate_limit: {unit: minute, requests_per_unit: 2}
- key: path
  value: /a*
  rate_limit: {unit: minute, requests_per_unit: 3}
- key: path
  value: /a/b*
  rate_limit: {unit: minute, requests_per_unit: 4}
- key: path
  value: "*x*y*z"
  rate_limit: {unit: minute, requests_per_unit: 5}
- key: path
  value: /a/exact
  rate_limit: {unit: minute, requests_per_unit: 6}
- key: tenant
  rate_limit: {unit: minute, requests_per_unit: 7}
  descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 8}
  - key: user
    value: root
    rate_limit: {unlimited: true}
- key: tenant
  value: big
  descriptors:
  - key: user
    descriptors:
    - key: path
      value: "*"
      rate_limit: {unit: minute, requests_per_unit: 9}
- key: group*
  rate_limit: {unit: minute, requests_per_unit: 10}
`

// A descriptor matches a limit of the same depth: by key and value, then by wildcards in the order of the file, then
// by the key alone. The limit's number identifies it.
func TestMatch(t *testing.T) {
	r := newRig(t, matching, dropin.Options{})
	for text, want := range map[string]uint32{
		"user=alice":               1,
		"user=bob":                 2,
		"user=":                    2,
		"user=alice path=/a":       0, // deeper than the configuration
		"path=/a/b/c":              3, // the first wildcard of the file
		"path=/a/exact":            6,
		"path=-x-y-z":              5,
		"path=xyz":                 5,
		"path=xzy":                 0,
		"path=xyzz":                5,
		"path=":                    0,
		"path=/b":                  0,
		"tenant=t":                 7,
		"tenant=t user=u":          8,
		"tenant=big":               0, // has no limit of its own, and the key alone is not tried
		"tenant=big user=u":        0,
		"tenant=big user=u path=p": 9,
		"user=u tenant=t":          0,
		"group=g":                  10,
		"groupies=":                10,
		"other=o":                  0,
		"":                         0,
	} {
		st := r.ask(withHits(entries(text), 0)).Statuses[0]
		if got := st.GetCurrentLimit().GetRequestsPerUnit(); got != want || st.Code != ok {
			t.Errorf("%q: limit %d, %v, want %d", text, got, st.Code, want)
		}
	}
	r.want(r.ask(entries("tenant=t user=root")), ok, "OK 4294967295")
}

// With share_threshold, all values of a wildcard share a counter.
func TestMatch_ShareThreshold(t *testing.T) {
	r := newRig(t, `
domain: shop
descriptors:
- key: path
  value: /files/*
  share_threshold: true
  rate_limit: {unit: minute, requests_per_unit: 3}
  descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 2}
- key: path
  value: /own/*
  rate_limit: {unit: minute, requests_per_unit: 3}
`, dropin.Options{})
	r.want(r.ask(entries("path=/files/a")), ok, "OK 2")
	r.want(r.ask(entries("path=/files/b")), ok, "OK 1")
	r.want(r.ask(entries("path=/files/a user=u")), ok, "OK 1")
	r.want(r.ask(entries("path=/files/b user=u")), ok, "OK 0")
	r.want(r.ask(entries("path=/files/c user=v")), ok, "OK 1") // the user has no shared threshold
	r.want(r.ask(entries("path=/files/*")), ok, "OK 0")        // the pattern itself is a value too
	r.want(r.ask(entries("path=/own/a")), ok, "OK 2")
	r.want(r.ask(entries("path=/own/b")), ok, "OK 2")
}

// Texts that are equal when joined do not share a counter.
func TestMatch_KeysAreUnambiguous(t *testing.T) {
	r := newRig(t, `
domain: shop
descriptors:
- key: a
  rate_limit: {unit: minute, requests_per_unit: 9}
- key: a_b
  rate_limit: {unit: minute, requests_per_unit: 9}
- key: "a|x"
  rate_limit: {unit: minute, requests_per_unit: 9}
- key: a
  value: "1"
  descriptors:
  - {key: x, rate_limit: {unit: minute, requests_per_unit: 9}}
`, dropin.Options{})
	long := make([]byte, 1<<20)
	for i := range long {
		long[i] = 'v'
	}
	for _, text := range []string{"a=b_c", "a_b=c", "a=b", "a|x=y=z", "a=1 x=y", "a=1|x=y", "a=" + string(long), "a=" + string(long[1:]), "a=|#7", `a=\`, `a=\|x=y`} {
		r.want(r.ask(entries(text)), ok, "OK 8")
	}
}
