// SPDX-License-Identifier: Apache-2.0

package requesttext

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/clientaddr"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/policy"
)

// A Request is a request as attributes of policies, spelled like endpoints spell them. The zero Request has no
// attributes and is ready to use.
type Request struct {
	Attributes map[string]string // by name, as [policy.Attribute.String] writes it
	Cost       bucket.Tokens     // 0 for the cost of the policy
	Notes      []string          // about values that were left out or normalized
	Assumed    []string          // the attributes that the client adds automatically
	Claims     []string          // the attributes from a token that was not verified
}

// ClaimsNote is the note on [Request.Claims].
const ClaimsNote = "the claims come from a token that was not verified here; a server that verifies tokens uses them only if the token is valid"

// Read parses the text of an HTTP request, or one operand per line: see [Request.ReadOperand]. Errors with a place are
// an [Error].
func Read(text string) (Request, error) {
	var r Request
	if err := CheckText(text); err != nil {
		return r, err
	}
	switch {
	case strings.TrimSpace(text) == "":
		return r, ErrorAt(text, 0, "there is no request", "write a curl command, an HTTP request, or attributes such as header:x-api-key=k1")
	case !isHTTP(text):
		return r, r.readLines(text)
	}
	sent, err := readHTTP(text)
	if err != nil {
		return r, err
	}
	return r, r.AddHTTP(sent)
}

// curlCommand matches the beginning of a shell command that calls curl.
var curlCommand = regexp.MustCompile(`^(?:\s|#[^\n]*\n)*(?:\$\s+)?(?:(?:sudo|time|\w+=\S*)\s+)*(?:\S*[/\\])?curl(?:\.exe)?(?:\s|$)`)

// IsCurl reports whether text is a curl command line.
func IsCurl(text string) bool { return curlCommand.MatchString(text) }

func (r *Request) readLines(text string) error {
	at := 0
	var parts []string
	for line := range strings.Lines(text) {
		s := strings.TrimSpace(line)
		parts = parts[:0]
		if s != "" {
			parts = append(parts, s)
		}
		if method, target, ok := cutLine(s); ok {
			// Attributes may follow, as on a command line.
			words := strings.Fields(target)
			parts = append(parts[:0], strings.TrimSpace(method+" "+words[0]))
			parts = append(parts, words[1:]...)
		}
		for _, s := range parts {
			if err := r.ReadOperand(s); err != nil {
				return ErrorAt(text, at+len(line)-len(strings.TrimLeft(line, " \t")), err.Error(), "")
			}
		}
		at += len(line)
	}
	return nil
}

// ReadOperand parses an operand of mete explain: 'METHOD /path', a URL, or NAME=VALUE.
func (r *Request) ReadOperand(s string) error {
	if method, target, ok := cutLine(s); ok {
		return r.readLine(method, target)
	}
	return r.readAttribute(s)
}

// cutLine splits a request line with an optional method, and reports whether s is one.
func cutLine(s string) (method, target string, ok bool) {
	target = strings.TrimSpace(s)
	if before, after, found := strings.Cut(target, " "); found && !strings.ContainsAny(before, "=:/") {
		method, target = before, strings.TrimSpace(after)
	}
	return method, target, strings.HasPrefix(target, "/") || isURL(target)
}

func isURL(s string) bool {
	scheme, _, found := strings.Cut(s, "://")
	return found && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

func cutURL(s string) (host, target string) {
	_, rest, _ := strings.Cut(s, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host = rest[:end]
	if target = rest[end:]; !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	return host, target
}

func (r *Request) readLine(method, target string) error {
	if _, twice := r.Attributes["path"]; twice {
		return fmt.Errorf("%q: write only one request", target)
	}
	if method != "" {
		if err := r.setMethod(method); err != nil {
			return err
		}
	}
	if isURL(target) {
		host := ""
		host, target = cutURL(target)
		if err := r.setHost(host); err != nil {
			return err
		}
	}
	target, _, _ = strings.Cut(target, "#") // clients do not send the fragment
	return r.setTarget(target)
}

func (r *Request) setTarget(target string) error {
	if err := r.setPath(target); err != nil {
		return err
	}
	_, query, _ := strings.Cut(target, "?")
	for pair := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(key)
		if err != nil {
			continue
		}
		if value, ok := httpfacts.QueryValue(pair, name); ok {
			r.addFirst("query:"+name, value)
		}
	}
	return nil
}

func (r *Request) setMethod(sent string) error {
	method := requestpath.Method(sent)
	r.noteChange("method", sent, method)
	return r.set("method", method)
}

func (r *Request) setHost(sent string) error {
	host, ok := requestpath.Host(sent)
	if !ok {
		return fmt.Errorf("%q is not a host; write a name such as example.com", Shorten(sent))
	}
	r.noteChange("host", sent, host)
	return r.set("host", host)
}

func (r *Request) setPath(target string) error {
	path, disputed := requestpath.Parse(target)
	sent, _, _ := strings.Cut(target, "?")
	if disputed {
		return fmt.Errorf("servers interpret the path %q differently, so endpoints answer 400; write it without dot segments", Shorten(sent))
	}
	r.noteChange("path", sent, path)
	return r.set("path", path)
}

func (r *Request) readAttribute(s string) error {
	name, value, found := strings.Cut(s, "=")
	switch {
	case !found:
		return fmt.Errorf("%q is neither 'METHOD /path', a URL, nor NAME=VALUE, such as header:x-api-key=k1", Shorten(s))
	case name == "cost":
		return r.setCost(value)
	case name == "ip":
		name = "ip:address"
	}
	a, err := policy.ParseAttribute(name)
	if err != nil {
		return err
	}
	switch a.Source {
	case policy.SourceHost:
		return r.setHost(value)
	case policy.SourcePath:
		return r.setPath(value)
	case policy.SourceMethod:
		return r.setMethod(value)
	case policy.SourceCookie:
		value = httpfacts.CookieText(value)
	case policy.SourceHeader:
		if a.Name == "authorization" {
			value = httpfacts.Credentials(value)
		}
	case policy.SourceIP:
		addr, err := netip.ParseAddr(value)
		if err != nil {
			return fmt.Errorf("%q is not an address; write one such as 192.0.2.1 or 2001:db8::1, without a port", Shorten(value))
		}
		value = clientaddr.Canonical(addr).String()
	}
	return r.set(a.String(), value)
}

func (r *Request) setCost(text string) error {
	cost, err := bucket.ParseTokens(text)
	switch {
	case err != nil:
		return fmt.Errorf("cost=%s: %s", Shorten(text), strings.TrimPrefix(err.Error(), bucket.ErrTokens.Error()+": "))
	case cost == 0:
		return errors.New("cost=0: a cost must be above 0")
	case r.Cost != 0:
		return errors.New("cost is given twice")
	}
	r.Cost = cost
	return nil
}

// AddHTTP adds the method, the request URI, the host, and each parameter, header and cookie of an HTTP request, as
// endpoints read them. For a value that occurs twice, it adds the first and a note. It reads the claims of a bearer
// token without verifying it. assumed names headers that the client adds automatically.
func (r *Request) AddHTTP(sent *http.Request, assumed ...string) error {
	if err := r.setMethod(sent.Method); err != nil {
		return err
	}
	if sent.Host != "" {
		if err := r.setHost(sent.Host); err != nil {
			return err
		}
		r.addFirst("header:host", sent.Host)
	}
	if err := r.setTarget(sent.RequestURI); err != nil {
		return err
	}
	for _, header := range slices.Sorted(maps.Keys(sent.Header)) {
		name := "header:" + strings.ToLower(header)
		for _, value := range sent.Header[header] {
			if r.addFirst(name, value) && slices.Contains(assumed, header) {
				r.Assumed = append(r.Assumed, name)
			}
		}
	}
	for _, line := range sent.Header["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			name, _, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
			if value, ok := httpfacts.CookieValue(pair, name); ok {
				r.addFirst("cookie:"+name, value)
			}
		}
	}
	r.addClaims(sent)
	return nil
}

func (r *Request) addClaims(sent *http.Request) {
	token, _ := httpfacts.BearerToken(sent)
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > httpfacts.MaxTokenBytes {
		return
	}
	claims, ok := httpfacts.ReadClaims(parts[1])
	if !ok {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		if name = "jwt:" + name; r.addFirst(name, claims[strings.TrimPrefix(name, "jwt:")]) {
			r.Claims = append(r.Claims, name)
		}
	}
}

// addFirst adds an attribute unless it is set already or no policy can refer to it.
func (r *Request) addFirst(name, value string) bool {
	a, err := policy.ParseAttribute(name)
	if err != nil {
		return false
	}
	if a.Name == "authorization" {
		value = httpfacts.Credentials(value)
	}
	if before, twice := r.Attributes[a.String()]; twice {
		r.noteDuplicate(a, before, value)
		return false
	}
	return r.set(a.String(), value) == nil
}

// noteDuplicate handles another value of an attribute like endpoints do.
func (r *Request) noteDuplicate(a policy.Attribute, before, value string) {
	switch {
	case a.Source != policy.SourceHeader && a.Source != policy.SourceQuery && a.Source != policy.SourceCookie, a.Name == "host":
		return
	case a.Source == policy.SourceHeader:
		if joined, disputed := httpfacts.JoinLines(a.Name, []string{before, value}); !disputed {
			r.Attributes[a.String()] = joined
			return
		}
	}
	note := fmt.Sprintf("%s occurs more than once: if a rule reads it, endpoints answer 400", a)
	if !slices.Contains(r.Notes, note) {
		r.Notes = append(r.Notes, note)
	}
}

func (r *Request) set(name, value string) error {
	if r.Attributes == nil {
		r.Attributes = map[string]string{}
	}
	if _, twice := r.Attributes[name]; twice {
		return fmt.Errorf("%s is given twice", name)
	}
	r.Attributes[name] = value
	return nil
}

func (r *Request) noteChange(what, sent, matched string) {
	note := fmt.Sprintf("the %s %q is matched as %q", what, sent, matched)
	if sent != matched && !slices.Contains(r.Notes, note) {
		r.Notes = append(r.Notes, note)
	}
}
