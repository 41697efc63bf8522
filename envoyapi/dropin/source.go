// SPDX-License-Identifier: Apache-2.0

package dropin

import "google.golang.org/protobuf/types/known/structpb"

// A source is a configuration as its author wrote it, before any check that concerns several values. YAML files and
// messages of a control plane both become sources.
type source struct {
	at          place
	domain      string
	descriptors []descriptorSource
}

type descriptorSource struct {
	at          place
	key, value  string
	limit       *limitSource // nil for a descriptor without a limit
	descriptors []descriptorSource
	metadata    *structpb.Struct

	shadow, quota, detailed, valueToMetric, shared bool
}

type limitSource struct {
	at        place
	requests  uint32
	unit      string
	unlimited bool
	name      string
	replaces  []replacementSource
}

type replacementSource struct {
	at   place
	name string
}
