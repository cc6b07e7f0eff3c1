@testable import CarillonClient

/// Opens the directory of a store whose transfers have ended: the task of a transfer can release the lock of the directory a
/// while after the transfer has its value.
func whenReleased<Value>(_ open: () throws -> Value) async throws -> Value {
    for _ in 0..<3000 {
        do {
            return try open()
        } catch let error as PushError {
            guard error.code == .storageInUse else { throw error }
        }
        try await Task.sleep(for: .milliseconds(10))
    }
    return try open()
}
