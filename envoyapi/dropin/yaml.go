// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/metehq/mete/policyyaml/yamltree"
)

var (
	_ = yamltree.Parse
	_ structpb.Struct
	_ status.Status
)
