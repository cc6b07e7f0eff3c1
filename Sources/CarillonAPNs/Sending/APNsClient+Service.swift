import Logging
public import ServiceLifecycle

extension APNsClient: Service {
    /// Opens the minimum of connections, and ends when the service group does: a graceful shutdown answers what was taken,
    /// a cancellation gives it up.
    public func run() async throws {
        await withTaskCancellationHandler {
            do {
                try await cancelWhenGracefulShutdown { try await self.warmUp() }
            } catch let error as APNsError where error.code == .cancelled {
                // It is told to stop before there is a connection.
            } catch {
                // The first push tries again, and says what is wrong.
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
