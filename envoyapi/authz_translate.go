// SPDX-License-Identifier: Apache-2.0

package envoyapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/forwardauth"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/policy"
)

// maxKeptFields bounds the header fields of a translation that is kept for reuse.
const maxKeptFields = 256

// A translation holds the client's request as an [http.Request]. It is reused to save allocations.
type translation struct {
	header http.Header
	lines  []string // the values in header

	method, path, host string
}

var translations = sync.Pool{New: func() any { return &translation{header: http.Header{}} }}

func (t *translation) release() {
	if len(t.lines) > maxKeptFields {
		return
	}
	clear(t.header)
	clear(t.lines)
	*t = translation{header: t.header, lines: t.lines[:0]}
	translations.Put(t)
}

// request returns the client's request that Envoy describes, or the problem with its target, which the client chose.
// The result is valid until [translation.release].
func (t *translation) request(ctx context.Context, all *authv3.AttributeContext, sent *authv3.AttributeContext_HttpRequest) (*http.Request, *api.Problem) {
	t.method, t.path, t.host = sent.GetMethod(), sent.GetPath(), sent.GetHost()
	if raw := sent.GetHeaderMap(); raw != nil {
		t.addRaw(raw.GetHeaders())
	} else {
		t.addJoined(sent.GetHeaders())
	}
	var target *url.URL
	if t.path == "" && t.method == http.MethodConnect {
		target = &url.URL{Host: t.host} // as net/http reads it
	} else if u, err := forwardauth.ParseTarget(t.path); err == nil {
		target = u
	} else {
		return nil, api.NewProblem(http.StatusBadRequest, "The target of the request is not valid.")
	}
	if extensions := all.GetContextExtensions(); len(extensions) > 0 {
		ctx = context.WithValue(ctx, extensionsKey{}, extensions)
	}
	r := http.Request{
		Method: t.method, URL: target, Host: t.host, Header: t.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		RemoteAddr: all.GetSource().GetAddress().GetSocketAddress().GetAddress(),
		Body:       http.NoBody,
	}
	return r.WithContext(ctx), nil
}

// addRaw adds the fields of a raw header. Its pseudo-header fields replace the method, path and host, in which Envoy
// has replaced bytes that are not UTF-8.
func (t *translation) addRaw(fields []*corev3.HeaderValue) {
	for _, field := range fields {
		value := field.GetValue()
		if raw := field.GetRawValue(); len(raw) > 0 {
			value = string(raw)
		}
		switch name := field.GetKey(); name {
		case ":method":
			t.method = value
		case ":path":
			t.path = value
		case ":authority":
			t.host = value
		default:
			t.add(name, value)
		}
	}
}

// addJoined adds the fields of a header in which Envoy has joined repeated fields with a comma. It writes no space
// after that comma, unlike most senders of values that contain one.
func (t *translation) addJoined(fields map[string]string) {
	for name, value := range fields {
		if strings.IndexByte(value, ',') < 0 || httpfacts.IsListField(name) {
			t.add(name, value)
			continue
		}
		begin := 0
		for i := range len(value) {
			if value[i] == ',' && (i+1 == len(value) || value[i+1] != ' ') {
				t.add(name, value[begin:i])
				begin = i + 1
			}
		}
		t.add(name, value[begin:])
	}
}

// add adds a line to a field. It ignores pseudo-header fields and Host, which are no fields in an [http.Request].
func (t *translation) add(name, value string) {
	if strings.HasPrefix(name, ":") {
		return
	}
	if name = http.CanonicalHeaderKey(name); name == "Host" {
		return
	}
	if lines, repeated := t.header[name]; repeated {
		t.header[name] = append(lines, value) // the capacity of lines ends at its length
		return
	}
	t.lines = append(t.lines, value)
	last := len(t.lines)
	t.header[name] = t.lines[last-1 : last : last]
}

// extensionsKey is the key of the context extensions of a check in the context of its request.
type extensionsKey struct{}

// extensionPrefix is the beginning of the custom attributes for context extensions.
const extensionPrefix = "envoy:context:"

// withExtensions returns a function that looks up context extensions, and other attributes by next, which may be nil.
func withExtensions(next func(*http.Request, policy.Attribute) (string, bool)) func(*http.Request, policy.Attribute) (string, bool) {
	return func(r *http.Request, a policy.Attribute) (string, bool) {
		if a.Source == policy.SourceCustom {
			if key, ok := strings.CutPrefix(a.String(), extensionPrefix); ok {
				extensions, _ := r.Context().Value(extensionsKey{}).(map[string]string)
				value, ok := extensions[key]
				return value, ok
			}
		}
		if next == nil {
			return "", false
		}
		return next(r, a)
	}
}
