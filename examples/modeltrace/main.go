// SPDX-License-Identifier: Apache-2.0

// Command modeltrace converts public traces of requests to language models to the JSON lines that mete replay reads:
//
//	go run ./examples/modeltrace AzureLLMInferenceTrace_conv.csv > conv.jsonl
//	mete replay --policy examples/modeltrace/policy.yaml conv.jsonl
//
// It reads two formats:
//
//   - Azure LLM inference traces 2023, CC-BY-4.0, https://github.com/Azure/AzurePublicDataset: CSV with the columns
//     TIMESTAMP, ContextTokens and GeneratedTokens
//   - Mooncake, Apache-2.0, https://github.com/kvcache-ai/Mooncake/tree/main/FAST25-release/traces: JSON lines with timestamp
//     (milliseconds), input_length and output_length
//
// The traces have no max_tokens, so each request names none. They have no durations either: -token-time is the time that
// an answer takes per token.
package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("modeltrace: ")
	model := flag.String("model", "m", "the model of all requests")
	perToken := flag.Duration("token-time", 20*time.Millisecond, "the time that an answer takes per token")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: modeltrace [flags] FILE")
	}
	file, err := os.Open(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	if err := convert(os.Stdout, file, *model, *perToken); err != nil {
		log.Fatalf("%s: %v", flag.Arg(0), err)
	}
}

// A request is a row of a trace.
type request struct {
	at            time.Duration // since 1970, or since the begin of the trace
	input, output int64
}

// A line is a request for mete replay.
type line struct {
	At       float64 `json:"at"` // seconds
	Duration float64 `json:"duration"`
	AI       struct {
		Model  string `json:"model"`
		Prompt int64  `json:"prompt_tokens"`
	} `json:"ai"`
	Usage struct {
		Input  int64 `json:"input"`
		Output int64 `json:"output"`
	} `json:"usage"`
}

// convert writes a line for each request of a trace.
func convert(to io.Writer, from io.Reader, model string, perToken time.Duration) error {
	in := bufio.NewReader(from)
	next := readAzure(in)
	if begin, _ := in.Peek(1); bytes.Equal(begin, []byte("{")) {
		next = readMooncake(in)
	}
	out := bufio.NewWriter(to)
	encoder := json.NewEncoder(out)
	for n := 1; ; n++ {
		r, err := next()
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return fmt.Errorf("request %d: %w", n, err)
		}
		l := line{At: r.at.Seconds(), Duration: (time.Duration(r.output) * perToken).Seconds()}
		l.AI.Model, l.AI.Prompt = model, r.input
		l.Usage.Input, l.Usage.Output = r.input, r.output
		if err := encoder.Encode(l); err != nil {
			return err
		}
	}
}

func readAzure(from io.Reader) func() (request, error) {
	rows := csv.NewReader(from)
	rows.FieldsPerRecord = 3
	rows.ReuseRecord = true
	header := true
	return func() (r request, err error) {
		row, err := rows.Read()
		if err == nil && header {
			header = false
			row, err = rows.Read()
		}
		if err != nil {
			return r, err
		}
		at, err := time.Parse("2006-01-02 15:04:05", row[0])
		if err != nil {
			return r, err
		}
		r.at = time.Duration(at.UnixNano())
		var inputErr, outputErr error
		r.input, inputErr = strconv.ParseInt(row[1], 10, 64)
		r.output, outputErr = strconv.ParseInt(row[2], 10, 64)
		return r, errors.Join(inputErr, outputErr)
	}
}

func readMooncake(from io.Reader) func() (request, error) {
	rows := json.NewDecoder(from)
	return func() (request, error) {
		var row struct {
			Timestamp int64 `json:"timestamp"`
			Input     int64 `json:"input_length"`
			Output    int64 `json:"output_length"`
		}
		err := rows.Decode(&row)
		return request{time.Duration(row.Timestamp) * time.Millisecond, row.Input, row.Output}, err
	}
}
