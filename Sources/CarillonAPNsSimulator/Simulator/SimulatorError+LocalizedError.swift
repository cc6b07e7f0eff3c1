public import Foundation

extension APNsSimulator.SimulatorError: LocalizedError {
    /// ``message``.
    public var errorDescription: String? { message }
}
