import CarillonAPNs
import Foundation
import Testing

struct LocalizedErrorTests {
    @Test func `an error is described by its sentence`() {
        let error: any Error = APNsError(.tokenInvalid, "The device token has 3 characters.")
        #expect(error.localizedDescription == "The device token has 3 characters.")
    }
}
