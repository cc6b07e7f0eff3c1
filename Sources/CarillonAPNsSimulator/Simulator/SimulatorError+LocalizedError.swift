public import Foundation

extension APNsSimulator.SimulatorError: LocalizedError {
    /// The same text as ``message``.
    public var errorDescription: String? { message }
}
