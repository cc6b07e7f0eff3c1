import Logging
public import ServiceLifecycle

extension APNsClient: Service {
    /// Opens the minimum number of connections, and returns when the service group ends. A graceful shutdown waits for the
    /// responses to the accepted pushes; a cancellation abandons the pushes.
    public func run() async throws {
        await withTaskCancellationHandler {
            do {
                try await cancelWhenGracefulShutdown { try await self.warmUp() }
            } catch let error as APNsError where error.code == .cancelled {
                // The service is stopped before there is a connection.
            } catch {
                // The first push tries again, and reports the fault.
                configuration.logger.warning(
                    "cannot connect at the start; connecting with the first push", metadata: ["error": "\(error)"])
            }
            do {
                try await gracefulShutdown()
                await shutDown()
            } catch {
                await shutDown(drains: false)
            }
        } onCancel: {
            abandon()
        }
    }
}
