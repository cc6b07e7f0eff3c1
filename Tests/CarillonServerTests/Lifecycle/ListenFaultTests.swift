import Foundation
import NIOCore
import Testing

@testable import CarillonServer

/// The reason why a server cannot listen, in sentences for people.
struct ListenFaultTests {
    @Test(arguments: [
        (EADDRINUSE, "the address is in use"), (EADDRNOTAVAIL, "does not have the address"), (EACCES, "permission denied"),
        (ENOENT, "does not exist"), (EMFILE, "too many open files"), (EINVAL, "error 22"),
    ])
    func `an error of the system has a sentence`(_ code: CInt, _ text: String) async {
        let place = ListenPlace.address(host: "127.0.0.1", port: 8080)
        let fault = await #expect(throws: ListenFault.self) {
            try await ListenFault.naming(place) { () async throws -> Void in
                throw IOError(errnoCode: code, reason: "bind(descriptor:ptr:bytes:)")
            }
        }
        #expect(fault?.sentence.hasPrefix("cannot listen on 127.0.0.1:8080: ") == true)
        #expect(fault?.sentence.contains(text) == true, "\(fault?.sentence ?? "")")
        #expect(!SystemErrorText.of(code).contains("errno"))
        #expect(fault?.sentence.contains("errno") == false && fault?.sentence.contains("descriptor") == false)
    }
}
