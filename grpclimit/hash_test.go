// SPDX-License-Identifier: Apache-2.0

package grpclimit_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete"
	"github.com/metehq/mete/grpclimit"
	"github.com/metehq/mete/storetest"

	pb "google.golang.org/grpc/interop/grpc_testing"
)

// secretive is a store with a secret.
type secretive struct {
	mete.Store
	secret byte
}

func (s secretive) DeriveKey(context.Context, string) ([32]byte, error) {
	return [32]byte{s.secret}, nil
}

// Without a HashKey, the secret of the store keys the hashes: interceptors with one
// secret limit together.
func TestHashKey_IsTheStores(t *testing.T) {
	store := storetest.NewModel(now)
	config := grpclimit.Config{Methods: []grpclimit.MethodLimit{{Name: "unary", Methods: []string{unaryCall}, Key: grpclimit.By("header:x-k"), Bucket: perHour(t, 3)}}}
	for i, tt := range []struct {
		secret byte
		want   int
	}{{'a', 3}, {'a', 0}, {'b', 3}} {
		client := serve(t, &service{}, newInterceptor(t, newLimiter(t, secretive{store, tt.secret}, ""), config))
		admitted := 0
		for range 4 {
			_, err := client.UnaryCall(as(t.Context(), "x-k", strings.Repeat("k", 100)), &pb.SimpleRequest{})
			switch status.Code(err) {
			case codes.OK:
				admitted++
			case codes.ResourceExhausted:
			default:
				t.Fatal(err)
			}
		}
		if admitted != tt.want {
			t.Errorf("interceptor %d with secret %c admitted %d, want %d", i, tt.secret, admitted, tt.want)
		}
	}
}
