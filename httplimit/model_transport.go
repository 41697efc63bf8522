// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/queuewait"
	"github.com/metehq/mete/policy"
)

// ModelTransportConfig holds the settings of a [ModelTransport]. The zero value has defaults.
type ModelTransportConfig struct {
	// Base sends the requests. If nil, it is [http.DefaultTransport].
	Base http.RoundTripper

	// Attribute returns the jwt: and custom attributes of a request, such as the team that pays for it. A program can
	// put it into the context of the request. It must be safe for concurrent use. If nil, requests have no such attributes.
	Attribute func(*http.Request, policy.Attribute) (value string, ok bool)

	// Account returns the account under which the provider counts a request. Requests with the same account and model
	// share the pauses that the provider announces. If nil, it is scheme and host.
	Account func(*http.Request) string

	// MaxWait bounds how long a request waits for the limits and for the provider. Zero means one minute. A negative value
	// denies requests that would have to wait.
	MaxWait time.Duration

	// Ratios and Tiktoken estimate prompts, as in [Config].
	Ratios   *ai.Ratios
	Tiktoken ai.Estimator

	// OnModelCall, if not nil, is called at the end of each response to a request to a language model whose tokens a limit counts.
	// Requests that fail without a response are left out. It can run after the program has closed the body. It must not block, and must
	// not change or keep the call.
	OnModelCall func(context.Context, *policy.ModelCall)
}

// A ModelTransport is an [http.RoundTripper] for a program's own calls to language models. It limits them by the policy of
// a limiter, and obeys the limits of the provider. Processes share the budget and the pace if their limiters share a store:
//
//	transport, err := httplimit.NewModelTransport(limiter, httplimit.ModelTransportConfig{})
//	…
//	client := openai.NewClient(option.WithHTTPClient(&http.Client{Transport: transport}))
//
// A request reserves its estimated tokens. The tokens of a stream are charged while the program reads it. At the end of the
// body, the usage that the provider reports is settled. If the program closes the body earlier, or cancels the request, the rest
// is read in the background, for at most 10 minutes. doc/ai.md describes the charges.
// Rules see the request that the program sends: its path, its host, its header fields, and its ai: attributes. It has no
// ip:address.
//
// A request that a limit denies waits up to MaxWait. If it cannot be sent by then, or by the deadline of its context, it
// fails at once with a [DeniedError].
//
// A provider can reject a request with a Retry-After. Until that time, no process sends a request for this account and model. It
// can also announce that no tokens or no requests are left. Then no process sends one until the announced limit has refilled
// enough for a request of the same size. A ModelTransport does not repeat rejected requests: the SDKs of the providers do.
//
// It is safe for concurrent use. The body of each response must be read to its end or closed, as for each [http.Client].
type ModelTransport struct {
	limiter *mete.Limiter
	base    http.RoundTripper
	source  *httpfacts.Source
	ratios  *ai.Ratios
	account func(*http.Request) string
	maxWait time.Duration
	pauses  *providerPauses
	readOns *readOns
	onCall  func(context.Context, *policy.ModelCall)
}

// NewModelTransport returns a transport with the policy and the store of limiter. A limiter without a policy only obeys the
// limits of the provider.
func NewModelTransport(limiter *mete.Limiter, config ModelTransportConfig) (*ModelTransport, error) {
	if limiter == nil {
		return nil, errors.New("httplimit: new model transport: limiter is required: create one with mete.New")
	}
	t := &ModelTransport{limiter: limiter, base: config.Base, ratios: config.Ratios, account: config.Account, maxWait: cmp.Or(config.MaxWait, defaultMaxWait), readOns: newReadOns(), onCall: config.OnModelCall}
	if t.base == nil {
		t.base = http.DefaultTransport
	}
	if t.account == nil {
		t.account = origin
	}
	if t.ratios == nil {
		t.ratios, _ = ai.NewRatios(learnedModels)
	}
	var err error
	t.source, err = httpfacts.New(httpfacts.Config{Extra: config.Attribute, AI: httpfacts.AI{Ratios: t.ratios, Tiktoken: config.Tiktoken}})
	if err == nil {
		t.pauses, err = newProviderPauses(limiter)
	}
	if err != nil {
		return nil, fmt.Errorf("httplimit: new model transport: %w", err)
	}
	return t, nil
}

// RoundTrip implements [http.RoundTripper].
func (t *ModelTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL == nil {
		return t.base.RoundTrip(r) // which returns the error
	}
	ctx := r.Context()
	out := r.WithContext(ctx) // a RoundTripper must not change r
	out.Host = cmp.Or(r.Host, r.URL.Host)
	facts := t.source.Facts(out)
	defer facts.Release()
	target := t.target(facts)
	reserved, err := t.reserve(ctx, facts, target.look)
	if err == nil {
		if why := facts.Ambiguity(); why != "" {
			cancelModel(ctx, reserved)
			err = fmt.Errorf("the tokens of the request cannot be counted: %s", why)
		}
	}
	if err != nil {
		closeBody(out)
		return nil, fmt.Errorf("httplimit: %s %s: %w", cmp.Or(r.Method, http.MethodGet), origin(r), err)
	}
	var call *aiCall
	settles := reserved
	if settles.AwaitsResponse() {
		call = newAICall(settles, facts, t.ratios)
	} else {
		settles = nil
	}
	admission := newAdmission(settles, reserved.Slots, call)
	admission.setCallHook(t.onCall, t.readOns)
	reserved.Slots.KeepAlive()
	send := facts.Request()
	if call != nil {
		call.prepare(send)
		if send = call.detach(send, t.readOns); call.readOn != nil {
			return t.sendDetached(ctx, send, reserved, admission, target)
		}
	}
	res, err := t.send(send, reserved, admission, target)
	if err == nil && admission != nil {
		tapModel(ctx, admission, res)
	}
	return res, err
}

// send sends an admitted request. After an error, the request is settled.
func (t *ModelTransport) send(r *http.Request, reserved *mete.Reservation, admission *Admission, target *providerCall) (*http.Response, error) {
	ctx := r.Context()
	handshakes := new(handshakes)
	res, err := t.base.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, handshakes.trace())))
	if err != nil {
		if handshakes.failed() || isUnsent(err) || httpfacts.BodyError(err) != "" { // the provider did not get the whole request
			cancelModel(ctx, reserved)
		} else if admission != nil { // the provider may have processed it
			admission.end(ctx, &policy.Response{Bytes: -1})
		}
		return nil, err
	}
	if pause := providerPause(res, target); pause > 0 {
		t.pauses.begin(context.WithoutCancel(ctx), target.look, pause)
	}
	return res, nil
}

// sendDetached sends a request whose response is read to its end, even if the program cancels the request.
func (t *ModelTransport) sendDetached(ctx context.Context, r *http.Request, reserved *mete.Reservation, admission *Admission, target *providerCall) (*http.Response, error) {
	type result struct {
		res *http.Response
		err error
	}
	readOn, arrived := admission.call.readOn, make(chan result)
	readOn.watchCancel(r)
	go func() {
		res, err := t.send(r, reserved, admission, target)
		if err != nil {
			readOn.end()
		} else {
			tapModel(ctx, admission, res)
		}
		select {
		case arrived <- result{res, err}:
		case <-readOn.away:
			if err == nil && res.Body != nil {
				res.Body.Close()
			}
		}
	}()
	select {
	case a := <-arrived:
		return a.res, a.err
	case <-readOn.away:
		return nil, goneError(ctx)
	}
}

// goneError returns the error of a program that has canceled its request.
func goneError(ctx context.Context) error { return cmp.Or(context.Cause(ctx), context.Canceled) }

// CloseIdleConnections closes the idle connections of Base, if it supports that.
func (t *ModelTransport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

var modelAttribute, _ = policy.ParseAttribute("ai:model")

// target returns a request as its provider counts it.
func (t *ModelTransport) target(facts *httpfacts.Facts) *providerCall {
	model, _ := facts.Lookup(modelAttribute) // this reads the body
	c := &providerCall{look: t.pauses.charge(t.account(facts.Request()), model)}
	if q := facts.AIRequest(); q != nil {
		c.prompt = max(ai.SimpleWord(q), t.ratios.Estimate(q))
		c.completion = q.Completion(0)
	}
	return c
}

// reserve reserves the cost of a request as soon as all limits and the provider admit it.
func (t *ModelTransport) reserve(ctx context.Context, facts *httpfacts.Facts, look mete.Charge) (*mete.Reservation, error) {
	deadline := time.Now().Add(max(t.maxWait, 0))
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	for {
		left := max(time.Until(deadline), 0)
		r, err := t.limiter.Reserve(ctx, mete.Request{Attributes: facts, Charges: []mete.Charge{look}, MaxWait: left})
		if err != nil {
			return nil, err
		}
		if r.Allowed && r.Wait > 0 {
			again, err := t.await(ctx, r, look, deadline)
			if err != nil {
				return nil, err
			}
			if again {
				continue
			}
		}
		if r.Allowed {
			return r, nil
		}
		need, next := modelWait(&r.Decision)
		if need > left {
			return nil, newDeniedError(&r.Decision, look.Key)
		}
		if err := sleepModel(ctx, min(next, left)); err != nil {
			return nil, err
		}
	}
}

// await waits for the turn of r. again means that the provider has paused requests in the meantime, so that r was canceled.
func (t *ModelTransport) await(ctx context.Context, r *mete.Reservation, look mete.Charge, deadline time.Time) (again bool, err error) {
	pause := time.Duration(0)
	limits := r.Limits()
	for i := range limits {
		if s := &limits[i]; s.Key == look.Key {
			pause = s.Wait()
		}
	}
	if err := queuewait.Await(ctx, r, time.Until(deadline)); err != nil || !r.Allowed {
		return false, err
	}
	if pause > 0 { // processes must not return together
		spread := rand.N(min(pause/10, time.Second) + 1)
		if err := sleepModel(ctx, min(spread, time.Until(deadline))); err != nil {
			cancelModel(ctx, r)
			return false, err
		}
	}
	if left, err := t.pauses.left(ctx, look); err != nil || left == 0 {
		return false, nil // the store can fail after it has admitted the request
	}
	cancelModel(ctx, r)
	return true, nil
}

// cancelModel refunds a request that was not sent.
func cancelModel(ctx context.Context, r *mete.Reservation) {
	if r != nil {
		_ = r.Cancel(context.WithoutCancel(ctx)) // if the store fails, the tokens are lost
	}
}

// isUnsent reports whether a request failed before a connection was there.
func isUnsent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "dial" || op.Op == "proxyconnect")
}

// handshakes observes whether a request failed in a TLS handshake, before anything was sent.
type handshakes struct{ broken, connected atomic.Bool }

func (h *handshakes) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) { h.broken.Store(err != nil) },
		GotConn:          func(httptrace.GotConnInfo) { h.connected.Store(true) },
	}
}

func (h *handshakes) failed() bool { return h.broken.Load() && !h.connected.Load() }

func sleepModel(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
