// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/metehq/mete/bucket"
)

// A Response is the outcome of an admitted request, for limits that are charged by it: see [Limit.AwaitsResponse].
// With neither Status nor GRPC the outcome is unknown, and every charge stays as it is. This is the outcome of a
// client that disconnects before its response begins: no client may save tokens by hanging up.
type Response struct {
	// Status is the HTTP status that the client gets. 0 means none.
	Status int

	// GRPC is the name of the gRPC status code, such as UNAUTHENTICATED: see [GRPCCode]. It is empty if the response
	// has no such code. Status is then enough.
	GRPC string

	// Header returns a field of the response's header or trailer by its name in lower case. ok is false if there is no
	// such field, or more than one. A nil Header has no fields.
	Header func(name string) (value string, ok bool)

	// Bytes is the size of the body that has been sent. A negative value means that it is unknown.
	Bytes int64

	// Usage is the tokens that a language model used for the request, or nil if the response is not from one or they are
	// unknown. Model is the model that the request named.
	Usage *TokenUsage
	Model string

	// ServedModel is the model that the response names, or "". Servers can answer with another model than the requested one, for
	// example with a fallback. Limits of money charge the higher price of both. A name that begins with Model, such as its dated
	// version, is the same model, and so is one without a price.
	ServedModel string

	// Unfinished reports that the response was not read to its end, so that Usage is a part: it broke off, or its client was gone. A
	// limit of tokens then charges at least what the request reserved.
	Unfinished bool

	// Ended reports whether the response has ended. Before that, only Status and the header are final.
	Ended bool
}

// A Settlement is the effect of a response on the charge of one limit.
type Settlement struct {
	Rule   *Rule
	Limit  *Limit
	Key    string // of the bucket that was charged
	Shadow bool   // the rule denies nothing

	// Reserved is the cost that the request was admitted with. Charged is its final cost: 0 if charge_on does not list the
	// outcome.
	Reserved, Charged bucket.Tokens

	// Err is the error that kept the final cost from being applied, or nil. The request then keeps the cost that it was
	// admitted with. If a limit could not owe all of a higher cost, Charged is the part that it paid.
	Err error
}

func (r *Response) isKnown() bool { return r.Status > 0 || r.GRPC != "" }

func (r *Response) field(name string) (string, bool) {
	if r.Header == nil {
		return "", false
	}
	return r.Header(name)
}

// grpcCodes are the names of the gRPC status codes, by number, with the HTTP statuses that google.rpc.Code assigns.
var grpcCodes = [...]struct {
	name   string
	status int
}{
	{"OK", http.StatusOK},
	{"CANCELLED", StatusClientClosed},
	{"UNKNOWN", http.StatusInternalServerError},
	{"INVALID_ARGUMENT", http.StatusBadRequest},
	{"DEADLINE_EXCEEDED", http.StatusGatewayTimeout},
	{"NOT_FOUND", http.StatusNotFound},
	{"ALREADY_EXISTS", http.StatusConflict},
	{"PERMISSION_DENIED", http.StatusForbidden},
	{"RESOURCE_EXHAUSTED", http.StatusTooManyRequests},
	{"FAILED_PRECONDITION", http.StatusBadRequest},
	{"ABORTED", http.StatusConflict},
	{"OUT_OF_RANGE", http.StatusBadRequest},
	{"UNIMPLEMENTED", http.StatusNotImplemented},
	{"INTERNAL", http.StatusInternalServerError},
	{"UNAVAILABLE", http.StatusServiceUnavailable},
	{"DATA_LOSS", http.StatusInternalServerError},
	{"UNAUTHENTICATED", http.StatusUnauthorized},
}

// StatusClientClosed is the usual status in access logs for a client that disconnects before its response begins.
const StatusClientClosed = 499

const unknownCode = 2 // UNKNOWN

// GRPCCode returns the name of a gRPC status code, such as UNAUTHENTICATED for 16. An unknown number is UNKNOWN, as it is
// for clients.
func GRPCCode(number uint32) string {
	if int64(number) < int64(len(grpcCodes)) {
		return grpcCodes[number].name
	}
	return grpcCodes[unknownCode].name
}

// ParseGRPCCode returns the name of the code with a number in decimal, the form of the field grpc-status.
func ParseGRPCCode(number string) string {
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		n = unknownCode
	}
	return GRPCCode(uint32(n))
}

// GRPCCodes returns the names of the gRPC status codes, by number.
func GRPCCodes() (names []string) {
	for _, c := range grpcCodes {
		names = append(names, c.name)
	}
	return names
}

func grpcNumber(name string) int {
	i := slices.Index(GRPCCodes(), name)
	if i < 0 {
		return unknownCode
	}
	return i
}

// httpStatus returns the HTTP status of r. A gRPC code counts as the status that google.rpc.Code assigns to it.
func (r *Response) httpStatus() int {
	if r.GRPC == "" {
		return r.Status
	}
	return grpcCodes[grpcNumber(r.GRPC)].status
}

// grpcCode returns the number of the gRPC code of r. A response without a code has the one that a gRPC client derives
// from its HTTP status.
func (r *Response) grpcCode() int {
	if r.GRPC != "" {
		return grpcNumber(r.GRPC)
	}
	code := "UNKNOWN"
	switch s := r.Status; {
	case s < http.StatusBadRequest:
		code = "OK"
	case s == http.StatusBadRequest:
		code = "INTERNAL"
	case s == http.StatusUnauthorized:
		code = "UNAUTHENTICATED"
	case s == http.StatusForbidden:
		code = "PERMISSION_DENIED"
	case s == http.StatusNotFound:
		code = "UNIMPLEMENTED"
	case s == http.StatusTooManyRequests || s == http.StatusBadGateway || s == http.StatusServiceUnavailable || s == http.StatusGatewayTimeout:
		code = "UNAVAILABLE"
	}
	return grpcNumber(code)
}
