import CarillonCore
import Logging

extension HomeDomain {
    /// Writes the data that only the memory of the home contains, when the server stops. After a fault, which is logged, the next
    /// write is still tried.
    package func writeRemaining() async {
        await runtime.flush()
        await runtime.writeUnwritten()
        if runtime.hasUnwritten {
            shared.logger.error("outcomes cannot be written and are lost; their messages come again")
        }
        do {
            try await devices.writeSeen()
        } catch {
            shared.logger.warning(
                "cannot write which devices were seen", metadata: ["reason": "\(error)"])
        }
    }
}
