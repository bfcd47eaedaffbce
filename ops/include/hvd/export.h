#pragma once

// Marks what libhvd.so shows to the outside; everything else is compiled with hidden visibility.
#define HVD_API [[gnu::visibility("default")]]
