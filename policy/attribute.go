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

// A Source is the part of a request that an attribute comes from.
type Source uint8

// The sources of attributes in policy files. SourceCustom is for attributes that the embedding program defines.
const (
	SourceCustom  Source = iota
	SourceHeader         // header:x-api-key; case-insensitive
	SourceQuery          // query:tenant
	SourceCookie         // cookie:session
	SourceJWT            // jwt:plan, a claim
	SourceNetwork        // ip:country, ip:asn and ip:tor, which follow from ip:address: see [Options.Facts]
	SourceAgent          // ua:bot, which follows from header:user-agent: see [Options.Facts]
	SourceAI             // ai:model and others, from the body of a request to a language model: see [AIAttributes]
	SourceIP             // ip:address, cut to a prefix: see [Attribute.Bits]
	SourceMethod         // method
	SourcePath           // path, without the query; or path:NAME: see [Attribute.IsCaptured]
	SourceHost           // host, without the port, in lower case
)

// sources are the source names of policy files. A source with an example needs a colon and a name after it;
// the others have neither.
var sources = []struct {
	word    string
	source  Source
	example string
}{
	{"header", SourceHeader, "header:x-api-key"}, {"query", SourceQuery, "query:tenant"}, {"cookie", SourceCookie, "cookie:session"},
	{"jwt", SourceJWT, "jwt:sub"}, {"ip", SourceIP, "ip:address"}, {"ua", SourceAgent, "ua:bot"}, {"ai", SourceAI, "ai:model"}, {"method", SourceMethod, ""}, {"path", SourcePath, ""}, {"host", SourceHost, ""},
}

const (
	// maxAttributeBytes bounds the name of an attribute.
	maxAttributeBytes = 128

	// defaultBits is the IPv6 prefix length that identifies a client. A site gets a /64, so a client with one of its
	// addresses can use all of them.
	defaultBits = 64
)

// reserved are words that no attribute can begin with. They look like request facts that mete does not know. A
// rule, override or kill switch that uses one would silently match nothing.
var reserved = map[string]struct{ what, hint string }{
	"geo":      {"location attributes with that name", "write ip:country or ip:asn, or use a header that only your CDN or proxy can set"},
	"request":  {"attributes with that name", "write header:NAME, query:NAME, cookie:NAME, method, path or host"},
	"date":     {"date attributes", "change the limit for those days with an override, which ends at expires_at"},
	"time":     {"time attributes", "change the limit for those hours with an override, which ends at expires_at"},
	"response": {"response attributes: it decides a request before the response exists", "refund or settle afterwards through the API"},
	"body":     {"body attributes", "use a header or a query parameter"},
	"tls":      {"TLS attributes", "use a header that only your proxy can set, such as header:x-client-cert"},
}

// headerFor suggests the header that proxies set for the fact that a user expected under ip:NAME.
func headerFor(name string) string {
	return "header:x-client-" + strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

// maxSlips is the number of wrong letters up to which a name counts as a misspelled ip:address.
const maxSlips = 2

// ErrAttribute is wrapped by the errors of [ParseAttribute] and [NormalizeAttribute].
var ErrAttribute = errors.New("policy: invalid attribute")

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

// An Attribute is the parsed name of a fact about a request, such as header:x-api-key. Attributes are comparable.
// [ParseAttribute] makes them; the zero Attribute is invalid.
type Attribute struct {
	Source Source
	has    bool   // has makes it of another attribute: see readHas
	Name   string // after the colon, if any; header names in lower case

	// Bits is the prefix length of IPv6 addresses, as in ip:address/56. The default is 64; for other sources it is
	// 0. IPv4 addresses are never cut.
	Bits int

	text string // without the /bits, so that all prefixes of one address are one fact
}

// String returns the name that a request uses for the attribute: "header:x-api-key", "ip:address" or "method".
func (a Attribute) String() string { return a.text }

// Spelling returns the name as policy files spell it: like String, plus the bits of "ip:address/56".
func (a Attribute) Spelling() string {
	if a.Source == SourceIP && a.Bits != defaultBits {
		return a.text + "/" + strconv.Itoa(a.Bits)
	}
	return a.text
}

// Attributes are the facts about one request. Lookup returns the value of a, and whether the request has the
// attribute: an empty value is present. For [SourceIP] the value is the text of an address; the policy cuts it to
// its prefix.
type Attributes interface {
	Lookup(a Attribute) (value string, ok bool)
}

// A Map is the simplest [Attributes]: values by attribute name, as [Attribute.String] writes it. [NormalizeAttribute]
// converts names to that form.
type Map map[string]string

// Lookup implements [Attributes].
func (m Map) Lookup(a Attribute) (value string, ok bool) {
	value, ok = m[a.text]
	return value, ok
}

// NormalizeAttribute returns the name that a [Map] uses for the attribute s: "header:x-api-key" for "Header:X-Api-Key", and
// "ip:address" for "ip:address/56".
func NormalizeAttribute(s string) (string, error) {
	a, err := ParseAttribute(s)
	return a.text, err
}

// ParseAttribute parses the name of an attribute of requests. It is header:NAME, query:NAME, cookie:NAME, jwt:CLAIM,
// ip:address, ip:address/BITS, ip:country, ip:asn, ip:tor, ua:bot, ai:NAME, method, path, host, or a custom name. A custom name
// is a lower-case word of letters, digits, dots, dashes and underscores. A colon and more text may follow. The word before the colon and the
// name of a header are case-insensitive. A name has at most 128 bytes. Only policies have path:NAME.
func ParseAttribute(s string) (Attribute, error) {
	a, err := parseAttribute(s)
	switch {
	case err != nil:
		return Attribute{}, err
	case a.IsCaptured():
		return Attribute{}, &attributeError{s, "a path template of a rule captures it, and no request has it", "write path, with the whole path"}
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
		return Attribute{}, &attributeError{s, "mete has no " + facts.what, facts.hint}
	}
	for _, src := range sources {
		switch {
		case word != src.word:
			continue
		case src.example != "" && name == "":
			return Attribute{}, &attributeError{s, word + " needs a colon and a name", "as in " + src.example}
		case src.source == SourcePath && hasName:
			return parseCaptured(s, name)
		case src.example == "" && hasName:
			return Attribute{}, &attributeError{s, word + " takes no colon and no name", "write " + word}
		case src.source == SourceIP:
			return parseIP(s, name)
		case src.source == SourceAgent:
			return parseDerived(s, SourceAgent, word, name)
		case src.source == SourceAI:
			return parseAI(s, strings.ToLower(name))
		}
		return parseBuiltin(s, src.source, word, name)
	}
	return parseCustom(s, hasName)
}

func parseBuiltin(s string, source Source, word, name string) (Attribute, *attributeError) {
	a := Attribute{Source: source, Name: name, text: word}
	switch source {
	case SourceHeader:
		a.Name = strings.ToLower(name)
		fallthrough
	case SourceCookie:
		if strings.IndexFunc(name, isNotToken) >= 0 {
			return Attribute{}, &attributeError{s, "a " + word + " name is made of letters, digits and !#$%&'*+-.^_`|~", ""}
		}
	case SourceQuery, SourceJWT:
		if !isPrintable(name) {
			return Attribute{}, &attributeError{s, "a " + word + " name has no spaces or control characters", ""}
		}
	}
	if a.Name != "" {
		a.text += ":" + a.Name
	}
	return a, nil
}

func parseIP(s, name string) (Attribute, *attributeError) {
	if isDerived(SourceNetwork, strings.ToLower(name)) {
		return parseDerived(s, SourceNetwork, "ip", name)
	}
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
		if name != "" && strings.IndexFunc(name, isNotToken) < 0 && spell.Distance(name, "address") > maxSlips && !strings.HasPrefix("address", name) {
			hint = fmt.Sprintf("use a header that only your CDN or proxy can set, such as %s", headerFor(name))
		}
		return Attribute{}, &attributeError{s, "the attributes of the client's address are ip:address, ip:country, ip:asn and ip:tor", hint}
	}
	return Attribute{Source: SourceIP, Name: name, Bits: bits, text: "ip:address"}, nil
}

// parseCustom parses the name of an attribute that the embedding program defines. Words that are one letter away
// from a source (headers:, hots) are errors, because the rule would silently never apply.
func parseCustom(s string, hasName bool) (Attribute, *attributeError) {
	word, name, _ := strings.Cut(s, ":")
	for i, c := range []byte(word) {
		if !('a' <= c && c <= 'z' || i > 0 && ('0' <= c && c <= '9' || c == '_' || c == '.' || c == '-')) {
			word = ""
			break
		}
	}
	if word == "" || hasName && name == "" || !isPrintable(name) {
		return Attribute{}, &attributeError{s, "unknown attribute",
			"write header:NAME, query:NAME, cookie:NAME, jwt:CLAIM, ip:address, ip:country, ua:bot, method, path, host, or a lower-case name that your program supplies"}
	}
	for _, src := range sources {
		if len(word) > 2 && word[0] == src.word[0] && (src.example != "") == hasName && spell.Distance(word, src.word) == 1 {
			near := src.word
			if hasName {
				near += ":" + name
			}
			return Attribute{}, &attributeError{s, "unknown attribute", fmt.Sprintf("did you mean %q?", near)}
		}
	}
	return Attribute{Source: SourceCustom, Name: name, text: s}, nil
}

// isNotToken reports whether c is outside the token characters of RFC 9110, section 5.6.2.
func isNotToken(c rune) bool {
	return c > unicode.MaxASCII || c <= ' ' || c == 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
}

// isPrintable reports whether s is text without spaces.
func isPrintable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(c rune) bool { return !unicode.IsGraphic(c) || unicode.IsSpace(c) }) < 0
}
