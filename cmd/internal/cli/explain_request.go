// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/policy"
)

// A typedRequest is a request as somebody types it.
type typedRequest struct {
	client.Request
	notes []string // what is matched in another spelling
}

// read reads operands: a request line or a URL, and attributes.
func (r *typedRequest) read(operands []string) error {
	r.Attributes = map[string]string{}
	line := false
	for _, operand := range operands {
		var err error
		switch method, target, isLine := cutLine(operand); {
		case isLine && line:
			return fmt.Errorf("%q: one request is explained at a time", operand)
		case isLine:
			line = true
			err = r.readLine(method, target)
		default:
			err = r.readAttribute(operand)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cutLine splits a request line, whose method may be missing, and says whether it
// is one.
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

// readLine reads a method, which may be empty, and a path or URL.
func (r *typedRequest) readLine(method, target string) error {
	if method != "" {
		if err := r.set("method", requestpath.Method(method)); err != nil {
			return err
		}
		r.noteChange("method", method, requestpath.Method(method))
	}
	if isURL(target) {
		_, rest, _ := strings.Cut(target, "://")
		end := strings.IndexAny(rest, "/?#")
		if end < 0 {
			end = len(rest)
		}
		host := rest[:end]
		if target = rest[end:]; !strings.HasPrefix(target, "/") {
			target = "/" + target
		}
		if _, after, found := strings.Cut(host, "@"); found {
			host = after
		}
		if err := r.readHost(host); err != nil {
			return err
		}
	}
	target, _, _ = strings.Cut(target, "#") // clients keep it to themselves
	if err := r.readPath(target); err != nil {
		return err
	}
	_, query, _ := strings.Cut(target, "?")
	return r.readQuery(query)
}

func (r *typedRequest) readHost(sent string) error {
	host, ok := requestpath.Host(sent)
	if !ok {
		return fmt.Errorf("%q is no host; write its name, such as example.com", sent)
	}
	r.noteChange("host", sent, host)
	return r.set("host", host)
}

func (r *typedRequest) readPath(target string) error {
	path, disputed := requestpath.Of(target)
	sent, _, _ := strings.Cut(target, "?")
	if disputed {
		return fmt.Errorf("servers read the path %q differently, and front doors answer 400 to it; write it without dot segments", sent)
	}
	r.noteChange("path", sent, path)
	return r.set("path", path)
}

// readQuery has the first value of each parameter, as front doors have.
func (r *typedRequest) readQuery(query string) error {
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(key)
		value, err := url.QueryUnescape(value)
		if pair == "" || nameErr != nil || err != nil || strings.Contains(pair, ";") {
			continue
		}
		a, err := policy.ParseAttribute("query:" + name)
		if err != nil {
			continue // no policy can name it
		}
		if _, twice := r.Attributes[a.String()]; !twice {
			r.Attributes[a.String()] = value
		}
	}
	return nil
}

// readAttribute reads NAME=VALUE.
func (r *typedRequest) readAttribute(operand string) error {
	name, value, found := strings.Cut(operand, "=")
	switch {
	case !found:
		return fmt.Errorf("%q is neither 'METHOD /path', a URL, nor NAME=VALUE, such as header:x-api-key=k1", operand)
	case name == "cost":
		return r.readCost(value)
	case name == "ip":
		name = "ip:address"
	}
	a, err := policy.ParseAttribute(name)
	if err != nil {
		return err
	}
	switch a.Source {
	case policy.Host:
		return r.readHost(value)
	case policy.Path:
		return r.readPath(value)
	case policy.Method:
		r.noteChange("method", value, requestpath.Method(value))
		value = requestpath.Method(value)
	case policy.IP:
		addr, err := netip.ParseAddr(value)
		if err != nil {
			return fmt.Errorf("%q is not an address; write one such as 192.0.2.1 or 2001:db8::1, without a port", value)
		}
		value = addr.Unmap().WithZone("").String()
	}
	return r.set(a.String(), value)
}

func (r *typedRequest) readCost(text string) error {
	cost, err := bucket.ParseTokens(text)
	switch {
	case err != nil:
		return fmt.Errorf("cost=%s: %w", text, plain(err))
	case cost == 0:
		return errors.New("cost=0: a cost must be above 0")
	case r.Cost != 0:
		return errors.New("cost is given twice")
	}
	r.Cost = cost
	return nil
}

func (r *typedRequest) set(name, value string) error {
	if _, twice := r.Attributes[name]; twice {
		return fmt.Errorf("%s is given twice", name)
	}
	r.Attributes[name] = value
	return nil
}

func (r *typedRequest) noteChange(what, sent, matched string) {
	if sent != matched {
		r.notes = append(r.notes, fmt.Sprintf("the %s %q is matched as %q", what, sent, matched))
	}
}
