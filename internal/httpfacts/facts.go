// SPDX-License-Identifier: Apache-2.0

// Package httpfacts reads the attributes that a policy uses from an [http.Request]. All HTTP adapters share it,
// so that a rule means the same in each of them.
//
//   - header:, query: and cookie: are the value of that name. An empty value is present; a name that does not
//     occur is missing. A name that occurs twice or in two spellings is disputed: see [Facts.Ambiguity]. Lines of a
//     list field, such as Accept, are joined with commas. Percent escapes in cookies are decoded. In
//     header:authorization, the scheme has its registered case and is followed by one space.
//   - ip:address is the client's address: see [Trust].
//   - method is in upper case. path is decoded once, without query and path parameters, and with empty and dot
//     segments resolved. host is in lower case, without port, brackets or final dot. Package requestpath
//     documents both.
//   - ai: attributes come from the first 1 MiB of the body. The handler still gets the whole body.
//   - jwt: and custom attributes come from the embedding program. jwt: attributes can also come from a token that
//     was verified in front of the program.
//
// Values are read on demand. The work is linear in the size of the request, which the server bounds
// ([http.Server.MaxHeaderBytes]). Nothing is truncated, because the rest would escape its limit.
package httpfacts

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/policy"
)

// Config configures a [Source]. The zero Config trusts only the connection and the request itself.
type Config struct {
	// Trust configures trusted proxies.
	Trust Trust

	// Extra, if not nil, returns jwt: and custom attributes. It may be called concurrently.
	Extra func(*http.Request, policy.Attribute) (value string, ok bool)

	// UnverifiedClaims reads jwt: attributes from the payload of the bearer token WITHOUT verifying it, so
	// clients can write any claim. Set it only if something in front of the program verifies every token. Extra
	// is then called for custom attributes only.
	UnverifiedClaims bool

	// LookAlikes disputes a header field that some servers treat as a field of a rule, such as X_Api_Key for
	// X-Api-Key. It is for adapters in front of such servers.
	LookAlikes bool

	// HeaderOnly is for adapters that see only the header of a request. A request to a language model then has no prompt, and no
	// request has a fingerprint.
	HeaderOnly bool

	// AI configures the attributes of requests to language models.
	AI AI
}

// A Source creates the [Facts] of requests. It is safe for concurrent use.
type Source struct {
	config    Config
	forwarded string    // [Trust.Header] in its canonical form
	pool      sync.Pool // of *Facts
	bodies    bodyMemory
}

// New returns a source for config.
func New(config Config) (*Source, error) {
	if err := config.Trust.Check(); err != nil {
		return nil, err
	}
	config.Trust.Proxies = slices.Clone(config.Trust.Proxies)
	s := &Source{config: config, forwarded: http.CanonicalHeaderKey(cmp.Or(config.Trust.Header, "X-Forwarded-For"))}
	s.pool.New = func() any { return new(Facts) }
	return s, nil
}

// Trusts reports whether a trusted proxy opened the connection of r.
func (s *Source) Trusts(r *http.Request) bool { return s.config.Trust.peer(r).trusted }

// ForwardedHeader returns the canonical name of the header field with client addresses.
func (s *Source) ForwardedHeader() string { return s.forwarded }

// Facts returns the facts of r. The caller must call [Facts.Release].
func (s *Source) Facts(r *http.Request) *Facts {
	f := s.pool.Get().(*Facts)
	f.source, f.r = s, r
	return f
}

// Facts holds the attributes of one request. It is not safe for concurrent use. Lookups of headers, the method,
// the host, the path and the address do not allocate if the request has them in their usual form.
type Facts struct {
	source *Source
	r      *http.Request

	own        bool              // r is a copy made by [Facts.Resolve] or [Facts.RemoveField]
	ownHeader  bool              // the header of r is also a copy
	lookAlikes bool              // dispute look-alikes, as [Config.LookAlikes]
	hasPlace   bool              // place has been read
	hasPeer    bool              // peer has been read
	hasAddress bool              // address has been determined
	place      requestpath.Place // the path
	peer       peer              // the other end of the connection
	address    string            // address of the client; "" if unknown
	dispute    dispute           // the first dispute, if any
	asked      policy.Attribute  // attribute of the current Lookup
	policy     *policy.Matcher   // deciding policy; nil if there is none yet
	now        bucket.Instant    // decision time
	claims     map[string]string
	hasClaims  bool // claims have been read
	seen       []fact
	body       requestBody
	beforeRead func() // see BeforeRead; may be nil
}

type fact struct {
	source policy.Source
	name   string
	found
}

// maxSeen bounds the cached scans. The values of other names are not cached.
const maxSeen = 32

// Release returns f to the pool. Values from lookups stay valid.
func (f *Facts) Release() {
	s := f.source
	clear(f.seen)
	*f = Facts{seen: f.seen[:0]}
	s.pool.Put(f)
}

// SetPolicy sets the policy and the time of the decision. Then only attributes of enforced rules can be disputed.
func (f *Facts) SetPolicy(m *policy.Matcher, now bucket.Instant) { f.policy, f.now = m, now }

// Lookup implements [policy.Attributes].
func (f *Facts) Lookup(a policy.Attribute) (value string, ok bool) {
	f.asked = a
	switch a.Source {
	case policy.SourceHeader:
		return f.header(a.Name)
	case policy.SourceIP:
		return f.Address()
	case policy.SourceMethod:
		f.disputeMethod()
		return method(f.r), true
	case policy.SourcePath:
		path, disputed := f.Place()
		switch {
		case disputed:
			f.addDispute(dispute{kind: disputedPlace})
		case f.place.Unsplit != "" && f.policy != nil && f.policy.Distinguishes(path, f.place.Unsplit):
			f.addDispute(dispute{kind: disputedSlash})
		}
		return path, true
	case policy.SourceHost:
		host, ok := Host(f.r.Host)
		// A target without a path may contain another host, and servers may accept an invalid one:
		// "[example.com]", "example.com..".
		if f.r.URL.Opaque != "" || !ok && f.r.Host != "" {
			f.addDispute(dispute{kind: disputedPlace})
		}
		return host, ok
	case policy.SourceQuery:
		// Some servers end the query at a "#", which no valid target contains.
		if strings.IndexByte(f.r.URL.RawQuery, '#') >= 0 {
			f.addDispute(dispute{kind: disputedPlace})
		}
		return f.scan(a, query)
	case policy.SourceCookie:
		return f.scan(a, cookie)
	case policy.SourceAI:
		return f.ai(a.Name)
	case policy.SourceJWT:
		// If there are several fields, the server may read a different one.
		if len(f.r.Header["Authorization"]) > 1 {
			f.addDispute(dispute{kind: repeatedHeader, name: "authorization"})
		}
		if f.source.config.UnverifiedClaims {
			return f.claim(a.Name)
		}
	}
	if extra := f.source.config.Extra; extra != nil {
		return extra(f.r, a)
	}
	return "", false
}

func (f *Facts) scan(a policy.Attribute, find func(*http.Request, string) found) (string, bool) {
	for i := range f.seen {
		if s := &f.seen[i]; s.source == a.Source && s.name == a.Name {
			f.addPairDispute(a, s.disputed)
			return s.value, s.ok
		}
	}
	got := find(f.r, a.Name)
	f.addPairDispute(a, got.disputed)
	if len(f.seen) < maxSeen {
		f.seen = append(f.seen, fact{a.Source, a.Name, got})
	}
	return got.value, got.ok
}

func (f *Facts) addPairDispute(a policy.Attribute, disputed bool) {
	if disputed {
		f.addDispute(dispute{kind: disputedPair, source: a.Source, name: a.Name})
	}
}

func (f *Facts) claim(name string) (string, bool) {
	if !f.hasClaims {
		f.claims, f.hasClaims = unverifiedClaims(f.r), true
	}
	value, ok := f.claims[name]
	return value, ok
}
