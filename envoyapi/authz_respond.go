// SPDX-License-Identifier: Apache-2.0

package envoyapi

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/forwardauth"
	"github.com/metehq/mete/internal/ratelimitfields"
)

// The reasons in the metadata of requests that get a 400: servers may interpret the request differently, or its target is
// not valid.
const (
	reasonAmbiguous     = "ambiguous"
	reasonInvalidTarget = "invalid_target"
)

// A recorder keeps an HTTP response in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

var recorders = sync.Pool{New: func() any { return &recorder{header: http.Header{}} }}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

func (r *recorder) release() {
	clear(r.header)
	r.status = 0
	r.body.Reset()
	recorders.Put(r)
}

// respond returns the response with the status, header fields and body that an HTTP gateway would get.
func (a *Authorization) respond(answer *forwardauth.Answer, original *http.Request) *authv3.CheckResponse {
	w := recorders.Get().(*recorder)
	defer w.release()
	answer.Write(w, original)
	d := &answer.Decision
	switch {
	case answer.Err != nil:
		return w.denial(statusDenied, a.cache.metadata("", mete.ReasonStoreError, true))
	case answer.Ambiguity != "":
		return w.denial(statusDenied, a.cache.metadata(d.Rule, reasonAmbiguous, d.Degraded))
	case !d.Allowed:
		code := statusDenied
		if ratelimitfields.Status(d) == http.StatusTooManyRequests { // regardless of the status that the policy sets
			code = statusExhausted
		}
		return w.denial(code, a.cache.metadata(d.Rule, d.Reason, d.Degraded))
	}
	return &authv3.CheckResponse{
		Status:          statusOK,
		HttpResponse:    &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{ResponseHeadersToAdd: options(w.header)}},
		DynamicMetadata: a.cache.metadata(d.Rule, d.Reason, d.Degraded),
	}
}

// reject returns the response to a request with an invalid target.
func (a *Authorization) reject(p *api.Problem) *authv3.CheckResponse {
	w := recorders.Get().(*recorder)
	defer w.release()
	ratelimitfields.Write(w, &http.Request{}, p)
	return w.denial(statusDenied, a.cache.metadata("", reasonInvalidTarget, false))
}

// The shared statuses. Envoy allows a request with the status OK and denies it with any other. A response must not
// modify them.
var (
	statusOK        = &rpcstatus.Status{Code: int32(codes.OK)}
	statusExhausted = &rpcstatus.Status{Code: int32(codes.ResourceExhausted)}
	statusDenied    = &rpcstatus.Status{Code: int32(codes.PermissionDenied)}
)

// denial sets the HTTP status explicitly, because Envoy's default is 403. Envoy rejects a response with a status that it
// does not know, so the client gets 429 instead.
func (r *recorder) denial(code *rpcstatus.Status, metadata *structpb.Struct) *authv3.CheckResponse {
	if _, known := typev3.StatusCode_name[int32(r.status)]; !known {
		r.status = http.StatusTooManyRequests
	}
	return &authv3.CheckResponse{
		Status: code,
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status:  &typev3.HttpStatus{Code: typev3.StatusCode(r.status)},
			Headers: options(r.header),
			Body:    r.body.String(),
		}},
		DynamicMetadata: metadata,
	}
}

// maxFields is the number of fields that fit without an allocation for their names.
const maxFields = 16

// options returns header fields in the order of their names. They replace fields of the same name, so that the client
// does not get a second limit from the service.
func options(header http.Header) []*corev3.HeaderValueOption {
	if len(header) == 0 {
		return nil
	}
	var space [maxFields]string
	names := space[:0]
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	made := make([]struct {
		option corev3.HeaderValueOption
		value  corev3.HeaderValue
	}, len(names))
	list := make([]*corev3.HeaderValueOption, len(names))
	for i, name := range names {
		m := &made[i]
		m.value.Key, m.value.Value = lowerName(name), strings.Join(header[name], ", ")
		m.option.Header, m.option.AppendAction = &m.value, corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
		list[i] = &m.option
	}
	return list
}

// maxMetadata bounds the cached metadata, which includes rules of earlier policies. At the bound, all are dropped.
const maxMetadata = 8192

// A metadataCache makes the dynamic metadata of responses. There are few different ones. Its zero value is ready.
type metadataCache struct {
	made  sync.Map // metadataKey → *structpb.Struct
	count atomic.Int64
}

type metadataKey struct {
	rule, reason string
	degraded     bool
}

// metadata returns the deciding rule and the reason of a denial, if any. The caller must not modify it.
func (c *metadataCache) metadata(rule, reason string, degraded bool) *structpb.Struct {
	key := metadataKey{rule, reason, degraded}
	if made, ok := c.made.Load(key); ok {
		return made.(*structpb.Struct)
	}
	s := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	if rule != "" {
		s.Fields["rule"] = structpb.NewStringValue(rule)
	}
	if reason != "" {
		s.Fields["reason"] = structpb.NewStringValue(reason)
	}
	if degraded {
		s.Fields["degraded"] = structpb.NewBoolValue(true)
	}
	if len(s.Fields) == 0 {
		s = nil
	}
	if c.count.Add(1) > maxMetadata {
		c.made.Clear()
		c.count.Store(1)
	}
	c.made.Store(key, s)
	return s
}
