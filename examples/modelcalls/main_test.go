// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
)

// Example has a provider whose answers get longer. The third request of a team finds no room for its completion.
func Example() {
	var calls atomic.Int64
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := calls.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices": [{"message": {"role": "assistant", "content": "answer %d"}, "finish_reason": "stop"}],
			"usage": {"prompt_tokens": 12, "completion_tokens": %d}}`, n, 800*n)
	}))
	defer provider.Close()
	if err := run(context.Background(), provider.URL+"/v1", "test"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// search: answer 1
	// search: answer 2
	// search: denied by team: tpm_exceeded
	// support: answer 3
}
