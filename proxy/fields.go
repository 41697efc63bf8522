// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"strings"

	"github.com/metehq/mete/internal/httpfacts"
)

// A fate is what becomes of a field of a request on its way to the upstream.
type fate uint8

const (
	passes      fate = iota
	removed          // whoever sent it
	written          // removed, and written anew by the proxy
	fromTrusted      // passes from a trusted proxy, and is removed from anyone else
)

func (f fate) String() string {
	return [...]string{"passes", "removed", "written anew", "removed, unless a trusted proxy sent it"}[f]
}

// A fieldRow is a group of fields with one fate: a row of the table in doc/proxy.md.
type fieldRow struct {
	Names []string // "*" at the end stands for the rest of a name
	Label string   // in place of Names, where no list of names says it
	Fate  fate
	Why   string
}

// fieldRows are all fields of requests that do not simply pass.
var fieldRows = []fieldRow{
	{Names: []string{"Connection", "Upgrade", "TE", "Trailer", "Transfer-Encoding", "Content-Length"}, Fate: written,
		Why: "they describe one connection or one body. `Upgrade` goes on with a protocol of `upgrades`, `TE` as `trailers`"},
	{Label: "names that `Connection` lists", Fate: removed, Why: "they are for one hop"},
	{Names: []string{"Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "HTTP2-Settings"}, Fate: removed,
		Why: "they are for one hop"},
	{Names: []string{"Proxy"}, Fate: removed, Why: "CGI programs take it for the proxy that they are to use (CVE-2016-5385)"},
	{Label: "names with `_`, or any other character but letters, digits and `-`", Fate: removed,
		Why: "CGI, WSGI, Rack and PHP read `X_Api_Key` as `X-Api-Key`. The setting `underscores_in_headers` passes or refuses them"},
	{Names: []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}, Fate: written,
		Why: "client, host and scheme. From a trusted proxy, `-Host` and `-Proto` stay, and the address comes after the hops in `forwarded_header`"},
	{Names: []string{"X-Forwarded*"}, Fate: fromTrusted,
		Why: "`-Port`, `-Prefix`, `-Server`, `-Ssl`, `-Scheme`, `-Uri`, `-User` and the like: Spring, Rack, ASP.NET and Traefik believe them"},
	{Label: "the field that `forwarded_header` names", Fate: fromTrusted, Why: "the upstream believes it as mete does"},
	{Names: []string{
		"X-Real-IP", "True-Client-IP", "X-True-Client-IP", "Akamai-Client-IP", "Client-IP", "X-Client-IP", "X-Cluster-Client-IP", "X-Remote-IP", "X-Remote-Addr", "X-Originating-IP",
		"X-ProxyUser-IP", "Forwarded-For", "Proxy-Client-IP", "WL-Proxy-Client-IP", "CF-Connecting-IP", "CF-Connecting-IPv6", "CF-Pseudo-IPv4",
		"Fastly-Client-IP", "Fly-Client-IP", "DO-Connecting-IP", "Incap-Client-IP", "Ali-CDN-Real-IP", "CDN-Src-IP", "X-Sucuri-ClientIP",
		"X-Azure-ClientIP", "X-Azure-SocketIP", "X-Appengine-User-IP", "X-Appengine-Remote-Addr", "X-Envoy-External-Address",
		"X-NF-Client-Connection-IP", "X-Vercel-Forwarded-For", "X-Custom-IP-Authorization",
	}, Fate: fromTrusted, Why: "the address of the client: chi, Rails, PHP, Java and many plugins take it from one of them"},
	{Names: []string{"X-Host", "X-HTTP-Host-Override", "X-Scheme", "X-URL-Scheme", "Front-End-Https", "X-ARR-SSL", "WL-Proxy-SSL",
		"CloudFront-Forwarded-Proto", "CF-Visitor"}, Fate: fromTrusted, Why: "host and scheme: they choose another site"},
	{Names: []string{"X-Original*", "X-Rewrite-URL", "X-Override-URL", "X-Script-Name", "X-Envoy-Original-Path", "X-WAWS-Unencoded-URL", "X-MS-Original-URL"}, Fate: fromTrusted,
		Why: "`X-Original-URL`, `-URI`, `-Host`, `-Method` and the like: IIS, Symfony, Laminas and WSGI servers take another path from them, past the rule for it"},
	{Names: []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"}, Fate: passes,
		Why: "400 where a rule reads the method. To remove them would make another request of it: a POST of a DELETE"},
	{Label: "a header field that a rule reads, twice", Fate: passes, Why: "400, unless the field is a list such as `Accept`"},
}

var (
	fates    = map[string]fate{} // by canonical name
	prefixes []string            // of names, all of them fromTrusted
)

func init() {
	for _, row := range fieldRows {
		for _, name := range row.Names {
			if start, ok := strings.CutSuffix(name, "*"); ok {
				prefixes = append(prefixes, http.CanonicalHeaderKey(start))
			} else {
				fates[http.CanonicalHeaderKey(name)] = row.Fate
			}
		}
	}
}

// fateOf returns the fate of the field with that canonical name.
func fateOf(name string) fate {
	if f, ok := fates[name]; ok {
		return f
	}
	if strings.HasPrefix(name, "X-") {
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) {
				return fromTrusted
			}
		}
	}
	return passes
}

// The values of [Config.UnderscoresInHeaders].
const (
	dropUnderscores   = "drop"
	passUnderscores   = "pass"
	refuseUnderscores = "refuse"
)

// fateOf returns the fate of the field with that canonical name in a request to p.
func (p *Proxy) fateOf(name string) fate {
	switch {
	case httpfacts.IsPlainName(name):
		if f := fateOf(name); f != passes || name != p.source.ForwardedHeader() {
			return f
		}
		return fromTrusted
	case p.config.UnderscoresInHeaders == passUnderscores:
		return p.fateOfFolded(name)
	}
	return removed
}

// fateOfFolded returns the fate of a name that servers read with hyphens. What the
// proxy writes under the name with hyphens, and what rules look at under it, is not to be
// written by a client, too.
func (p *Proxy) fateOfFolded(name string) fate {
	folded := []byte(name)
	for i, c := range folded {
		if !httpfacts.IsPlainName(string(c)) {
			folded[i] = '-'
		}
	}
	plain := http.CanonicalHeaderKey(string(folded))
	if f := p.fateOf(plain); f == fromTrusted {
		return f
	} else if _, known := fates[plain]; !known {
		return f
	}
	return removed
}

// reads reports whether rules, or the proxy itself, read a field of a request.
func (p *Proxy) reads(name string, trusted bool) bool {
	switch p.fateOf(name) {
	case removed:
		return false
	case fromTrusted:
		return trusted
	case written: // mete ignores forwarded fields from untrusted clients
		return trusted || name != "Forwarded" && !strings.HasPrefix(name, "X-Forwarded")
	}
	return true
}

// sendsOn reports whether a field of a request goes on as it came.
func (p *Proxy) sendsOn(name string, trusted bool) bool {
	f := p.fateOf(name)
	return f == passes || f == fromTrusted && trusted
}

// oddName returns the name of a field of the request or its trailer that
// [Config.UnderscoresInHeaders] refuses.
func oddName(r *http.Request) (name string, ok bool) {
	for _, fields := range [...]http.Header{r.Header, r.Trailer} {
		for name := range fields {
			if !httpfacts.IsPlainName(name) {
				return name, true
			}
		}
	}
	return "", false
}
