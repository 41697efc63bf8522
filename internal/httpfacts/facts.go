// SPDX-License-Identifier: Apache-2.0

// Package httpfacts reads the attributes a policy asks for out of an
// [http.Request]. It is what all HTTP front doors share, so that a rule means
// the same behind each of them.
//
//   - header:, query: and cookie: are the value of that name. An empty value is
//     there; a name that does not occur is missing. A name that occurs twice is
//     disputed, and so is a name in two spellings: see [Facts.Dispute]. Lines of a
//     header field that is a list, such as Accept, are one value, joined with commas.
//     Percent escapes in cookies are decoded. Of header:authorization, the scheme has
//     its registered case, and one space follows it.
//   - ip:address is the client's: see [Trust].
//   - method is in upper case. path is without the query, decoded once, and without
//     path parameters; empty and dot segments are resolved, a slash at its end is
//     kept, and case counts. What is a dot segment only to some servers is
//     resolved, too: see [Facts.Dispute]. host is in lower case, without port,
//     brackets or trailing dot. Package requestpath says all about both.
//   - jwt: and custom attributes are what the embedding program supplies, or,
//     by explicit choice, the claims of a token that something in front of the
//     program has verified.
//
// Values are read when they are asked for. Work is linear in the size of the
// request, which the server bounds ([http.Server.MaxHeaderBytes]): nothing is
// cut off in here, because whatever lies behind a cut would escape its limit.
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

// Config says where facts come from. The zero Config believes nothing but the
// connection and the request itself.
type Config struct {
	// Trust says whom to believe about the client's address.
	Trust Trust

	// Extra, if set, supplies jwt: and custom attributes. It is called once for
	// each time the policy asks, possibly from several goroutines at once.
	Extra func(*http.Request, policy.Attribute) (value string, ok bool)

	// UnverifiedClaims takes jwt: attributes from the payload of the bearer
	// token WITHOUT verifying it: anybody can write any claim into it. It is
	// only for programs that no request reaches before something else has
	// verified its token. Extra is then asked for custom attributes only.
	UnverifiedClaims bool

	// LookAlikes disputes a request with a header field that some servers read as one
	// that a rule reads, such as X_Api_Key for X-Api-Key. It is for front doors that ask
	// on behalf of such servers.
	LookAlikes bool
}

// A Source makes [Facts] of requests. It is safe for concurrent use.
type Source struct {
	config    Config
	forwarded string    // [Trust.Header] in its canonical form
	pool      sync.Pool // of *Facts
}

// New checks config and returns its source.
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

// ForwardedHeader returns the canonical name of the one header field from which the source
// reads addresses of clients.
func (s *Source) ForwardedHeader() string { return s.forwarded }

// Facts returns the facts about r, to be given back with [Facts.Release].
func (s *Source) Facts(r *http.Request) *Facts {
	f := s.pool.Get().(*Facts)
	f.source, f.r = s, r
	return f
}

// Facts are the attributes of one request. They are used by one goroutine at a
// time. Looking up headers, the method, the host, the path and the address
// allocates nothing where the request has them in their usual form.
type Facts struct {
	source *Source
	r      *http.Request

	own        bool              // r is a copy, which [Facts.Resolve] or [Facts.RemoveField] made
	ownHeader  bool              // and its header, too
	lookAlikes bool              // are disputed, as by [Config.LookAlikes]
	hasPlace   bool              // place has been read
	hasPeer    bool              // peer has been read
	hasAddress bool              // address has been looked for
	place      requestpath.Place // the path
	peer       peer              // the other end of the connection
	address    string            // of the client; "" if unknown
	dispute    dispute           // the first; the zero dispute is none
	asked      policy.Attribute
	policy     *policy.Matcher // that decides; nil where there is none, or not yet
	now        bucket.Instant  // at which it decides
	claims     map[string]string
	hasClaims  bool // claims have been looked for
	seen       []fact
}

// A fact is one that took a scan of the request to find, or not to find.
type fact struct {
	source policy.Source
	name   string
	found
}

// maxSeen bounds the scans that are remembered; further names are scanned for
// each time.
const maxSeen = 32

// Release ends the use of f. Values that were looked up stay valid.
func (f *Facts) Release() {
	s := f.source
	clear(f.seen)
	*f = Facts{seen: f.seen[:0]}
	s.pool.Put(f)
}

// Under says which policy decides, and at what time. From then on, only what an enforced
// rule of it reads is disputed: a rule in shadow refuses nothing.
func (f *Facts) Under(m *policy.Matcher, now bucket.Instant) { f.policy, f.now = m, now }

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
		if disputed {
			f.disputed(dispute{kind: disputedPlace})
		}
		return path, true
	case policy.SourceHost:
		host, ok := Host(f.r.Host)
		// A target that is no path may hold another host, and others may make one of
		// what is none: "[example.com]", "example.com..".
		if f.r.URL.Opaque != "" || !ok && f.r.Host != "" {
			f.disputed(dispute{kind: disputedPlace})
		}
		return host, ok
	case policy.SourceQuery:
		// Where some servers end it. No target may hold one.
		if strings.IndexByte(f.r.URL.RawQuery, '#') >= 0 {
			f.disputed(dispute{kind: disputedPlace})
		}
		return f.scan(a, query)
	case policy.SourceCookie:
		return f.scan(a, cookie)
	case policy.SourceJWT:
		// The server behind may read another one of them.
		if len(f.r.Header["Authorization"]) > 1 {
			f.disputed(dispute{kind: repeatedHeader, name: "authorization"})
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

// scan looks for a in the request with find, once.
func (f *Facts) scan(a policy.Attribute, find func(*http.Request, string) found) (string, bool) {
	for i := range f.seen {
		if s := &f.seen[i]; s.source == a.Source && s.name == a.Name {
			f.disputedPair(a, s.disputed)
			return s.value, s.ok
		}
	}
	got := find(f.r, a.Name)
	f.disputedPair(a, got.disputed)
	if len(f.seen) < maxSeen {
		f.seen = append(f.seen, fact{a.Source, a.Name, got})
	}
	return got.value, got.ok
}

func (f *Facts) disputedPair(a policy.Attribute, disputed bool) {
	if disputed {
		f.disputed(dispute{kind: disputedPair, source: a.Source, name: a.Name})
	}
}

// claim returns a claim of the request's bearer token, which is read once.
func (f *Facts) claim(name string) (string, bool) {
	if !f.hasClaims {
		f.claims, f.hasClaims = unverifiedClaims(f.r), true
	}
	value, ok := f.claims[name]
	return value, ok
}
