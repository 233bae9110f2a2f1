// Command temporal is a Temporal server with its data in memory. It says where it serves, and its namespace, and
// ends when its input does. It tells workflows early that their history gets long, so that tests reach that.
package main

import (
	"fmt"
	"io"
	"os"

	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/temporal"
	"go.temporal.io/server/temporaltest"
)

func main() {
	server := temporaltest.NewServer(temporaltest.WithBaseServerOptions(temporal.WithDynamicConfigClient(dynamicconfig.StaticClient{
		dynamicconfig.HistoryCountSuggestContinueAsNew.Key():        30,
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
	})))
	fmt.Println(server.GetFrontendHostPort(), server.GetDefaultNamespace())
	_, _ = io.Copy(io.Discard, os.Stdin)
}
