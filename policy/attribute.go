// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/internal/spell"
)

// A Source says where an attribute comes from.
type Source uint8

// The sources a policy file can name. Custom attributes are whatever an
// embedding program supplies under a name of its own.
const (
	SourceCustom Source = iota
	SourceHeader        // header:x-api-key; names in any case
	SourceQuery         // query:tenant
	SourceCookie        // cookie:session
	SourceJWT           // jwt:plan, a claim
	SourceIP            // ip:address, cut to a prefix: see [Attribute.Bits]
	SourceMethod        // method
	SourcePath          // path, without its query
	SourceHost          // host, without its port, in lower case
)

// sources are the words for them: some with a colon and a name, as in example,
// the others alone.
var sources = []struct {
	word    string
	source  Source
	example string
}{
	{"header", SourceHeader, "header:x-api-key"}, {"query", SourceQuery, "query:tenant"}, {"cookie", SourceCookie, "cookie:session"},
	{"jwt", SourceJWT, "jwt:sub"}, {"ip", SourceIP, "ip:address"}, {"method", SourceMethod, ""}, {"path", SourcePath, ""}, {"host", SourceHost, ""},
}

const (
	// maxAttributeBytes bounds the name of an attribute. Longer ones are refused.
	maxAttributeBytes = 128

	// defaultBits is how much of an IPv6 address counts: a site gets a /64, and
	// whoever has one address of it has them all.
	defaultBits = 64
)

// reserved are words that name no attribute, not even one of a program. They look like
// facts about a request that mete does not know, so that a rule, an override or a
// kill switch with one would silently apply to nothing.
var reserved = map[string]struct{ what, hint string }{
	"ua": {"facts about user agents",
		"match header:user-agent by how it begins, or use a header that the CDN or proxy in front sets and clients cannot, such as header:x-bot-category"},
	"geo": {"facts about places",
		"use a header that the CDN or proxy in front sets and clients cannot, such as header:cf-ipcountry"},
	"request":  {"facts about requests by that name", "write header:NAME, query:NAME, cookie:NAME, method, path or host"},
	"date":     {"dates as an attribute", "change the limit for those days by an override, which ends at expires_at"},
	"time":     {"time of day as an attribute", "change the limit for those hours by an override, which ends at expires_at"},
	"response": {"facts about responses: a request is decided before there is one", "refund or settle afterwards, through the API"},
	"body":     {"facts about bodies", "use a header or a query parameter"},
	"tls":      {"facts about TLS connections", "use a header that the proxy in front sets and clients cannot, such as header:x-client-cert"},
}

// ipHeader is a header in which proxies say what somebody sought under ip:NAME.
func ipHeader(name string) string {
	if name == "country" {
		return "header:cf-ipcountry"
	}
	return "header:x-client-" + strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

// maxSlips is how many letters of ip:address may be wrong in what is taken for it.
const maxSlips = 2

// ErrAttribute is wrapped by the errors of [ParseAttribute] and [Normalize].
var ErrAttribute = errors.New("policy: not an attribute")

// An attributeError says what is wrong with a name, and what to write instead.
type attributeError struct{ name, reason, hint string }

func (e *attributeError) Error() string {
	name, rest := parse.Cut(e.name)
	s := fmt.Sprintf("%v: %q%s: %s", ErrAttribute, name, rest, e.reason)
	if e.hint != "" {
		s += "; " + e.hint
	}
	return s
}

func (e *attributeError) Unwrap() error { return ErrAttribute }

// An Attribute is the compiled name of a fact about a request, such as
// header:x-api-key. It is a comparable value, made by [ParseAttribute]; the
// zero Attribute is no fact at all.
type Attribute struct {
	Source Source
	Name   string // what follows the colon, if anything; header names in lower case

	// Bits is how much of an IPv6 address counts: ip:address/56. It is 64
	// unless the name says otherwise, and 0 for other sources. IPv4 addresses
	// always count whole.
	Bits int

	text string // without the /bits, so that all of one address are one fact
}

// String returns the name under which a request supplies the attribute:
// "header:x-api-key", "ip:address", "method".
func (a Attribute) String() string { return a.text }

// Spelled returns the name as a policy file has to spell it: what String returns
// and, for "ip:address/56", the bits.
func (a Attribute) Spelled() string {
	if a.Source == SourceIP && a.Bits != defaultBits {
		return a.text + "/" + strconv.Itoa(a.Bits)
	}
	return a.text
}

// Attributes are the facts about one request. Lookup returns the value of a,
// and whether the request has it: an empty value is not a missing one. For
// [SourceIP] the value is an address in text form; the policy cuts it to its prefix.
type Attributes interface {
	Lookup(a Attribute) (value string, ok bool)
}

// A Map is the plainest [Attributes]: values by attribute name, as
// [Attribute.String] writes it. [Normalize] brings foreign names in that form.
type Map map[string]string

// Lookup implements [Attributes].
func (m Map) Lookup(a Attribute) (value string, ok bool) {
	value, ok = m[a.text]
	return value, ok
}

// Normalize returns the name under which a [Map] holds the attribute s:
// "Header:X-Api-Key" becomes "header:x-api-key", "ip:address/56" becomes
// "ip:address".
func Normalize(s string) (string, error) {
	a, err := ParseAttribute(s)
	return a.text, err
}

// ParseAttribute reads an attribute's name: header:NAME, query:NAME,
// cookie:NAME, jwt:CLAIM, ip:address, ip:address/BITS, method, path, host, or a
// custom name: a lower-case word of letters, digits, dots, dashes and
// underscores, and perhaps a colon and what follows. The word before the colon
// may be in any case, and so may a header's name. At most 128 bytes.
func ParseAttribute(s string) (Attribute, error) {
	a, err := parseAttribute(s)
	if err != nil {
		return Attribute{}, err
	}
	return a, nil
}

func parseAttribute(s string) (Attribute, *attributeError) {
	if len(s) > maxAttributeBytes {
		return Attribute{}, &attributeError{s, fmt.Sprintf("an attribute has at most %d bytes", maxAttributeBytes), ""}
	}
	word, name, hasName := strings.Cut(s, ":")
	word = strings.ToLower(word)
	if facts, ok := reserved[word]; ok {
		return Attribute{}, &attributeError{s, "mete knows no " + facts.what, facts.hint}
	}
	for _, src := range sources {
		switch {
		case word != src.word:
			continue
		case src.example != "" && name == "":
			return Attribute{}, &attributeError{s, word + " needs a colon and a name", "as in " + src.example}
		case src.example == "" && hasName:
			return Attribute{}, &attributeError{s, word + " stands alone, without a colon", "write " + word}
		case src.source == SourceIP:
			return parseIP(s, name)
		}
		return known(s, src.source, word, name)
	}
	return custom(s, hasName)
}

// known checks a name of one of the built-in sources.
func known(s string, source Source, word, name string) (Attribute, *attributeError) {
	a := Attribute{Source: source, Name: name, text: word}
	switch source {
	case SourceHeader:
		a.Name = strings.ToLower(name)
		fallthrough
	case SourceCookie:
		if strings.IndexFunc(name, notToken) >= 0 {
			return Attribute{}, &attributeError{s, "a " + word + " name is made of letters, digits and !#$%&'*+-.^_`|~", ""}
		}
	case SourceQuery, SourceJWT:
		if !printable(name) {
			return Attribute{}, &attributeError{s, "a " + word + " name has no spaces or control characters", ""}
		}
	}
	if a.Name != "" {
		a.text += ":" + a.Name
	}
	return a, nil
}

// parseIP reads "address" or "address/bits".
func parseIP(s, name string) (Attribute, *attributeError) {
	name, suffix, cut := strings.Cut(name, "/")
	bits := defaultBits
	if cut {
		n, err := strconv.Atoi(suffix)
		if err != nil || n < 1 || n > 128 || strconv.Itoa(n) != suffix {
			return Attribute{}, &attributeError{s, "the prefix of an IPv6 address has 1 to 128 bits", "as in ip:address/56"}
		}
		bits = n
	}
	if name != "address" {
		hint := "write ip:address"
		if name != "" && strings.IndexFunc(name, notToken) < 0 && spell.Distance(name, "address") > maxSlips && !strings.HasPrefix("address", name) {
			hint = fmt.Sprintf("use a header that the CDN or proxy in front sets and clients cannot, such as %s", ipHeader(name))
		}
		return Attribute{}, &attributeError{s, "mete knows no fact about a client's address but ip:address", hint}
	}
	return Attribute{Source: SourceIP, Name: name, Bits: bits, text: "ip:address"}, nil
}

// custom reads the name of an attribute that only an embedding program knows.
// Words that are nearly those of a source (headers:, hots) are taken for a slip
// of the pen: the rule would silently never apply.
func custom(s string, hasName bool) (Attribute, *attributeError) {
	word, name, _ := strings.Cut(s, ":")
	for i, c := range []byte(word) {
		if !('a' <= c && c <= 'z' || i > 0 && ('0' <= c && c <= '9' || c == '_' || c == '.' || c == '-')) {
			word = ""
			break
		}
	}
	if word == "" || hasName && name == "" || !printable(name) {
		return Attribute{}, &attributeError{s, "no attribute is named like that",
			"write header:NAME, query:NAME, cookie:NAME, jwt:CLAIM, ip:address, method, path, host, or a lower-case name of your program's own"}
	}
	for _, src := range sources {
		if len(word) > 2 && word[0] == src.word[0] && (src.example != "") == hasName && spell.Distance(word, src.word) == 1 {
			near := src.word
			if hasName {
				near += ":" + name
			}
			return Attribute{}, &attributeError{s, "no attribute is named like that", fmt.Sprintf("did you mean %q?", near)}
		}
	}
	return Attribute{Source: SourceCustom, Name: name, text: s}, nil
}

// notToken reports whether c is outside the token characters of RFC 9110,
// section 5.6.2.
func notToken(c rune) bool {
	return c > unicode.MaxASCII || c <= ' ' || c == 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
}

// printable reports whether s is text without spaces.
func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(c rune) bool { return !unicode.IsGraphic(c) || unicode.IsSpace(c) }) < 0
}
